"""`berth preview`, end to end: the real engine's plan of a fleet that is up, and of a new one."""

import copy
import json
import shutil
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import SMALL, Done, Project, Settings, environment_settings

pytestmark = pytest.mark.lab

DRIVER = "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion"


def environment(lab: Lab) -> Settings:
    """Production cluster on whole A4 nodes, two engineers who share one GPU node, and a third with
    her own stack.
    """
    return environment_settings(
        lab,
        {
            "cpu": {"machineType": "n2-standard-16", "nodes": 1, "maxPodsPerNode": 64, "labels": {"team": "research"}},
            "dev": {"machineType": "g2-standard-48", "nodes": 1, "sharing": "any"},
            "train": {"machineType": "a4-highgpu-8g", "nodes": 2, "hourlyRate": 12.5},
        },
        "gpu",
        currency="USD",
        cluster={"deletionProtection": False, "authorizedNetworks": {"office": "203.0.113.0/24"}},
        sharing={"any": {"kind": "time-slicing", "replicas": 4}},
        defaults=SMALL | {"worker": SMALL["worker"] | {"pool": "dev"}},
        engineers={"bob": {"workers": 2}, "carol": {}},
        clusters={"train": {"workers": 2, "worker": {"pool": "train"}}},
    )


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.make(tmp_path_factory.mktemp("preview") / "project", lab)
    project.write("fleet", environment=environment(lab))
    project.up("fleet")
    project.write("alice", engineer={"environment": "fleet", "workers": 2})
    project.up("alice")
    return project


@pytest.fixture(autouse=True)
def _as_it_is(fleet: Project) -> None:
    """Restore the deployed settings before every test."""
    fleet.write("fleet", environment=environment(fleet.lab))
    fleet.write("alice", engineer={"environment": "fleet", "workers": 2})


def preview(fleet: Project, *options: str, stack: str = "fleet") -> Done:
    return fleet.run("berth", "preview", "-s", stack, *options, check=False)


def changed(fleet: Project, **changes: Any) -> None:
    """Write the fleet's settings with other values; `pools__train__nodes=1` is a nested key, None
    removes it.
    """
    settings = copy.deepcopy(environment(fleet.lab))
    for path, value in changes.items():
        *way, last = path.split("__")
        target = settings
        for part in way:
            target = target[part]
        if value is None:
            del target[last]
        else:
            target[last] = value
    fleet.write("fleet", environment=settings)


def test_nothing_to_do(fleet: Project) -> None:
    done = preview(fleet, "--refresh", "--expect-no-changes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing to do." in done.stdout


def test_another_driver_replaces_a_pool_and_a_removed_engineer_loses_the_berth(fleet: Project) -> None:
    changed(fleet, pools__train__driverVersion="latest", engineers__carol=None)
    before = fleet.run("pulumi", "stack", "export", "-s", "fleet").stdout
    done = preview(fleet)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "± replace node pool  2 × a4-highgpu-8g, 16 B200 GPUs" in done.stdout
    assert f"{DRIVER}: DEFAULT → LATEST  forces the replacement" in done.stdout
    assert "GPUs that go away: 16 B200 of pool train, back if there is capacity" in done.stdout
    assert "cluster train (2 pods, 16 GPUs)" in done.stdout
    assert "  USD 600.00 (as now), by the hourly rates" in done.stdout
    assert "✗ berth carol is deleted, with everything that runs in it" in done.stdout
    assert "berth carol (2 pods, 1 share of a GPU)" in done.stdout
    assert "bob" not in done.stdout
    assert fleet.run("pulumi", "stack", "export", "-s", "fleet").stdout == before


def test_other_shares_disturb_berths_of_other_stacks_too_and_removed_values_stay(fleet: Project) -> None:
    removed: Settings = {"pools__cpu__maxPodsPerNode": None, "pools__cpu__labels": None}
    changed(fleet, sharing__any__replicas=2, cluster__authorizedNetworks=None, **removed)
    done = preview(fleet, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "disturbs"
    stays = {(stay["name"], stay["path"]): stay for stay in report["stays"]}
    assert stays["cpu", "maxPodsPerNode"]["value"] == 64
    assert "`maxPodsPerNode: 110`, which replaces the pool" in stays["cpu", "maxPodsPerNode"]["way"]
    assert stays["cpu", "nodeConfig.labels"]["value"] == {"team": "research"}
    (networks,) = (stay for (_, path), stay in stays.items() if path == "masterAuthorizedNetworksConfig")
    assert "{all: 0.0.0.0/0}" in networks["way"]
    assert len(stays) == 3
    (effect,) = [effect for change in report["changes"] for effect in change["effects"]]
    assert effect["text"].startswith("pool dev: sharing profile 'any' changes; the device plugin restarts on its nodes")
    assert [(item["name"], item["stack"], item["gpus"]) for item in effect["sitting"]] == [
        ("alice", "alice", 2),
        ("bob", "fleet", 2),
        ("carol", "fleet", 1),
    ]


@pytest.mark.long
def test_a_control_plane_that_is_opened(fleet: Project) -> None:
    changed(fleet, cluster__authorizedNetworks={"all": "0.0.0.0/0"})
    (change,) = json.loads(preview(fleet, "--json").stdout)["changes"]
    assert (change["resource"], change["operation"], change["level"]) == ("GKE cluster", "update", "disturbs")
    assert {prop["path"]: prop["new"] for prop in change["properties"]} == {
        "masterAuthorizedNetworksConfig.cidrBlocks[0].cidrBlock": "0.0.0.0/0",
        "masterAuthorizedNetworksConfig.cidrBlocks[0].displayName": "all",
    }


def test_defaults_that_only_other_stacks_use_are_reported(fleet: Project) -> None:
    """No resource changes, and yet `pulumi up` does something."""
    changed(fleet, pools__dev__hourlyRate=3)
    done = preview(fleet, "--expect-no-changes")
    assert "Engineers' own stacks will see new: pools." in done.stdout
    assert done.returncode == 4


@pytest.mark.long
def test_changes_outside_of_pulumi(fleet: Project) -> None:
    quota = ("resourcequota", "gpu-operator-quota", "-n", "gpu-operator")
    fleet.run("kubectl", "delete", *quota)
    done = preview(fleet, "--refresh", "--expect-no-changes")
    assert done.returncode == 4
    assert "GPU Operator, ResourceQuota gpu-operator: gone" in done.stdout
    fleet.up("fleet", "--refresh")
    assert fleet.get("resourcequotas", "-n", "gpu-operator")


def test_an_engineers_own_stack(fleet: Project) -> None:
    fleet.write("alice", engineer={"environment": "fleet", "workers": 2, "env": {"A": "b"}})
    done = preview(fleet, stack="alice")
    assert done.returncode == 3
    assert "✗ berth alice restarts: KubeRay recreates all its pods" in done.stdout


def test_a_stack_that_was_never_up(fleet: Project) -> None:
    fleet.write("new", environment=environment(fleet.lab))
    unknown = preview(fleet, stack="new")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "run: pulumi stack init new" in unknown.stderr
    fleet.run("pulumi", "stack", "init", "new", "--no-select")
    done = preview(fleet, stack="new")
    fleet.run("pulumi", "stack", "rm", "new", "--yes", "--preserve-config")
    assert done.returncode == 0, done.stderr
    assert "+ create node pool  2 × a4-highgpu-8g, 16 B200 GPUs" in done.stdout
    assert "Cost a day\n  B200: 384 GPU-hours (now 0)\n  L4: 96 GPU-hours (now 0)\n" in done.stdout
    assert done.stdout.endswith("Risk: none. Running work goes on.\n")


def test_pulumi_applies_what_checks_judge_and_nothing_else(fleet: Project) -> None:
    """Whoever hands Pulumi another file applies settings that no check and no preview has seen."""
    stacks = fleet.folder / "stacks"
    shutil.copy(stacks / "Pulumi.fleet.yaml", stacks / "Pulumi.other.yaml")
    fleet.write("other", environment=environment(fleet.lab) | {"isolation": {"quotas": False}})
    other = ["--config-file", "stacks/Pulumi.other.yaml"]
    done = fleet.run("pulumi", "preview", "-s", "fleet", *other, check=False)
    assert done.returncode != 0
    assert "environment.isolation: is another value for Pulumi than in this file" in done.stdout + done.stderr


def test_an_engine_that_fails(fleet: Project) -> None:
    fleet.write("locked", environment=environment(fleet.lab))
    fleet.run("pulumi", "stack", "init", "locked", "--no-select")
    done = fleet.run("env", "PULUMI_CONFIG_PASSPHRASE=wrong", "berth", "preview", "-s", "locked", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "passphrase" in done.stderr
    assert "Traceback" not in done.stderr


def test_only_the_reviewed_plan_is_applied(fleet: Project) -> None:
    def up() -> Done:
        return fleet.run("berth", "up", "-s", "fleet", "--yes", "--allow-destroy", "--plan", "plan.json", check=False)

    changed(fleet, pools__train__driverVersion="latest")
    assert preview(fleet, "--save", "plan.json").returncode == 3
    before = fleet.run("pulumi", "stack", "export", "-s", "fleet").stdout
    # Work begins on the pool that the plan replaces.
    late = fleet.lab.get("raycluster", "train", "-n", "berth-train")
    late["metadata"] = {"name": "late", "namespace": "berth-train"}
    file = fleet.folder / "late.json"
    file.write_text(json.dumps({key: late[key] for key in ("apiVersion", "kind", "metadata", "spec")}))
    fleet.run("kubectl", "create", "-f", str(file))
    refused = up()
    fleet.run("kubectl", "delete", "-f", str(file))
    assert (refused.returncode, "work that is lost: cluster train" in refused.stderr) == (2, True), refused.stderr
    # The file is edited after the review.
    changed(fleet, pools__train__driverVersion="latest", pools__cpu__labels={"team": "ops"})
    refused = up()
    assert "node pool cpu: change node pool cpu: nodeConfig.labels.team: research → ops" in refused.stderr
    assert (refused.returncode, "Pulumi.fleet.yaml is not as it was" in refused.stderr) == (2, True)
    assert fleet.run("pulumi", "stack", "export", "-s", "fleet").stdout == before, "nothing was done"
    changed(fleet, pools__cpu__labels={"team": "ops"})
    assert preview(fleet, "--save", "plan.json").returncode == 0
    done = up()
    assert done.returncode == 0, done.stderr
