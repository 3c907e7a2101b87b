"""berth's program and `berth preview` on a fleet that is up, end to end: real engine, API server,
scheduler and KubeRay operator.
"""

import copy
import json
import re
import shutil
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import SMALL, Done, Project, Settings, environment_settings, eventually

pytestmark = pytest.mark.lab

RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
NAMESPACE = "kubernetes:core/v1:Namespace"
QUOTA = "kubernetes:core/v1:ResourceQuota"
KEY = "projects/keys/locations/us-central1/keyRings/gke/cryptoKeys/disks"
DNS = {"clusterDns": "CLOUD_DNS"}
TAGS = {"tagKeys/281478395625645": "tagValues/281479442205542"}
DRIVER = "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion"


def environment(lab: Lab) -> Settings:
    """Production cluster on whole A4 nodes, two engineers who share one GPU node, and a third with
    her own stack.
    """
    return environment_settings(
        lab,
        {
            "cpu": {
                "machineType": "n2-standard-16",
                "nodes": 1,
                "maxPodsPerNode": 64,
                "labels": {"team": "research"},
                "arguments": {"nodeConfig": {"tags": ["cpu"], "resourceManagerTags": TAGS}},
            },
            "dev": {"machineType": "g2-standard-48", "nodes": 1, "sharing": "any"},
            "train": {"machineType": "a4-highgpu-8g", "nodes": 2, "hourlyRate": 12.5},
        },
        "gpu",
        currency="USD",
        cluster={
            "deletionProtection": False,
            "authorizedNetworks": {"office": "203.0.113.0/24"},
            "arguments": {
                "dnsConfig": DNS,
                "nodeConfig": {"bootDiskKmsKey": KEY},
            },
        },
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


def uids(fleet: Project, owner: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in fleet.workers(owner)}


def test_the_fleet_comes_up_ready(fleet: Project) -> None:
    clusters = {
        cluster["metadata"]["name"]: cluster["status"] for cluster in fleet.get("rayclusters", "-A")
    }
    assert {
        name: (cluster["state"], cluster["readyWorkerReplicas"])
        for name, cluster in clusters.items()
    } == {
        "alice": ("ready", 2),
        "bob": ("ready", 2),
        "carol": ("ready", 1),
        "train": ("ready", 2),
    }
    assert fleet.outputs("alice") == {"namespace": "berth-alice", "rayCluster": "alice"}


def test_free_gpus_are_those_that_no_pod_holds(fleet: Project) -> None:
    found = {
        offer["pool"]: offer
        for offer in json.loads(fleet.run("berth", "gpus", "-s", "fleet", "--json").stdout)
    }
    free = {pool: (offer["free"], offer["count"]) for pool, offer in found.items()}
    assert free == {"dev": (11, 16), "train": (0, 16)}


def test_a_second_up_changes_nothing(fleet: Project) -> None:
    before = fleet.versions()
    state = fleet.state("fleet").read_bytes()
    assert "✓ fleet is up: " in fleet.run("berth", "up", "-s", "fleet", "--yes").stdout
    assert fleet.state("fleet").read_bytes() == state, (
        "the preview is enough where everything is ready"
    )
    assert fleet.versions() == before


def test_status_agrees_with_the_api_server(fleet: Project) -> None:
    report = fleet.status("fleet")
    assert report["stack"] == "fleet"
    assert [
        (pool["name"], pool["nodes"], pool["gpus"], pool["gpusInUse"]) for pool in report["pools"]
    ] == [
        ("cpu", 1, 0, 0),
        ("dev", 1, 16, 5),
        ("train", 2, 16, 16),
    ]
    asked = {
        cluster["metadata"]["name"]: cluster["status"] for cluster in fleet.get("rayclusters", "-A")
    }
    for berth in (*report["berths"], *report["clusters"]):
        assert berth["ready"]
        assert berth["state"] == asked[berth["rayCluster"]]["state"]
        assert berth["workersReady"] == asked[berth["rayCluster"]]["readyWorkerReplicas"]
        assert berth["workersDesired"] == asked[berth["rayCluster"]]["desiredWorkerReplicas"]
    assert {item["name"]: item["gpus"] for item in report["berths"]} == {
        "alice": 2,
        "bob": 2,
        "carol": 1,
    }


def test_other_shares_disturb_berths_of_other_stacks_too_and_removed_values_stay(
    fleet: Project,
) -> None:
    removed: Settings = {"pools__cpu__maxPodsPerNode": None, "pools__cpu__labels": None}
    changed(fleet, sharing__any__replicas=2, cluster__authorizedNetworks=None, **removed)
    before = fleet.state("fleet").read_bytes()
    done = preview(fleet, "--json")
    assert done.returncode == 0, done.stderr
    assert fleet.state("fleet").read_bytes() == before
    report = json.loads(done.stdout)
    assert report["verdict"] == "disturbs"
    stays = {(stay["name"], stay["path"]): stay for stay in report["stays"]}
    assert stays["cpu", "maxPodsPerNode"]["value"] == 64
    assert "`maxPodsPerNode: 110`, which replaces the pool" in stays["cpu", "maxPodsPerNode"]["way"]
    assert stays["cpu", "nodeConfig.labels"]["value"] == {"team": "research"}
    (networks,) = (
        stay for (_, path), stay in stays.items() if path == "masterAuthorizedNetworksConfig"
    )
    assert "{all: 0.0.0.0/0}" in networks["way"]
    assert len(stays) == 3
    (effect,) = [effect for change in report["changes"] for effect in change["effects"]]
    assert effect["text"].startswith(
        "pool dev: sharing profile 'any' changes; the device plugin restarts on its nodes"
    )
    assert [(item["name"], item["stack"], item["gpus"]) for item in effect["sitting"]] == [
        ("alice", "alice", 2),
        ("bob", "fleet", 2),
        ("carol", "fleet", 1),
    ]


def test_a_stack_that_was_never_up(fleet: Project) -> None:
    fleet.write("new", environment=environment(fleet.lab))
    unknown = preview(fleet, stack="new")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "run: pulumi stack init new" in unknown.stderr
    assert "Traceback" not in unknown.stderr


def test_pulumi_applies_what_checks_judge_and_nothing_else(fleet: Project) -> None:
    """Whoever hands Pulumi another file applies settings that no check and no preview has seen."""
    stacks = fleet.folder / "stacks"
    shutil.copy(stacks / "Pulumi.fleet.yaml", stacks / "Pulumi.other.yaml")
    fleet.write("other", environment=environment(fleet.lab) | {"isolation": {"quotas": False}})
    other = ["--config-file", "stacks/Pulumi.other.yaml"]
    done = fleet.run("pulumi", "preview", "-s", "fleet", *other, check=False)
    assert done.returncode != 0
    assert (
        "environment.isolation: is another value for Pulumi than in this file"
        in done.stdout + done.stderr
    )
    assert "Traceback" not in done.stdout + done.stderr


def test_engineers_come_and_go_and_nobody_else_is_touched(fleet: Project) -> None:
    """Bob's number of workers changes in the same updates; the second applies a reviewed plan."""
    settings = environment(fleet.lab)

    def of_others() -> dict[str, str]:
        own = (" berth-bob/", "berth-dave")
        return {
            key: version
            for key, version in fleet.versions().items()
            if not any(name in key for name in own)
        }

    before = of_others()
    pods_of_bob = uids(fleet, "bob")
    settings["engineers"] |= {"bob": {"workers": 3}, "dave": {}}
    fleet.write("fleet", environment=settings)
    output = fleet.up("fleet").stdout
    done = dict(
        re.findall(
            r"^ [+~-]+ +(\S+ \S+) (created|updated|replaced|deleted)\b", output, re.MULTILINE
        )
    )
    assert {f"{NAMESPACE} dave", f"{RAY_CLUSTER} dave"} <= done.keys()
    assert {
        name: step for name, step in done.items() if step != "created" or "dave" not in name
    } == {
        f"{RAY_CLUSTER} bob": "updated",
        f"{QUOTA} bob-berth": "updated",
    }
    assert len(fleet.workers("dave")) == 1
    assert len(uids(fleet, "bob")) == 3
    assert uids(fleet, "bob") > pods_of_bob
    assert of_others() == before

    fleet.write("fleet", environment=environment(fleet.lab))
    assert preview(fleet, "--save", "plan.json").returncode == 3
    planned = up_as_planned(fleet)
    assert planned.returncode == 0, planned.stderr
    assert "berth-dave" not in {
        namespace["metadata"]["name"] for namespace in fleet.get("namespaces")
    }
    assert len(uids(fleet, "bob")) == 2
    assert of_others() == before


def up_as_planned(fleet: Project) -> Done:
    return fleet.run(
        "berth", "up", "-s", "fleet", "--yes", "--allow-destroy", "--plan", "plan.json", check=False
    )


def test_fields_without_a_setting_are_judged_by_what_the_provider_does_with_them(
    fleet: Project,
) -> None:
    changed(fleet, pools__train__arguments={"nodeConfig": {"tags": ["train"]}})
    in_place = preview(fleet)
    assert in_place.returncode == 0, in_place.stdout + in_place.stderr
    assert "Risk: none. Running work goes on." in in_place.stdout
    changed(fleet, pools__train__arguments={"nodeConfig": {"bootDiskKmsKey": KEY}})
    replaced = preview(fleet)
    assert replaced.returncode == 3, replaced.stdout + replaced.stderr
    assert "± replace node pool  2 × a4-highgpu-8g, 16 B200 GPUs" in replaced.stdout
    assert re.search(r"nodeConfig\.bootDiskKmsKey: .*forces the replacement", replaced.stdout)
    of_the_first_pool = {"nodeConfig": {"bootDiskKmsKey": f"{KEY}-2"}}
    changed(fleet, cluster__arguments={"dnsConfig": DNS} | of_the_first_pool)
    gone = preview(fleet)
    assert "to change" not in gone.stdout.splitlines()[0], gone.stdout


def test_another_driver_replaces_a_pool_and_only_the_reviewed_plan_is_applied(
    fleet: Project,
) -> None:
    changed(fleet, pools__train__driverVersion="latest", engineers__carol=None)
    before = fleet.state("fleet").read_bytes()
    reviewed = preview(fleet, "--save", "plan.json")
    assert reviewed.returncode == 3, reviewed.stdout + reviewed.stderr
    assert "± replace node pool  2 × a4-highgpu-8g, 16 B200 GPUs" in reviewed.stdout
    assert f"{DRIVER}: DEFAULT → LATEST  forces the replacement" in reviewed.stdout
    assert "✗ berth carol is deleted, with everything that runs in it" in reviewed.stdout
    assert "berth-carol/" not in reviewed.stdout, "nobody misses the isolation of what is deleted"
    # Work begins on the pool that the plan replaces.
    late = fleet.lab.get("raycluster", "train", "-n", "berth-train")
    late["metadata"] = {"name": "late", "namespace": "late"}
    file = fleet.folder / "late.json"
    file.write_text(
        json.dumps({key: late[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    )
    fleet.run("kubectl", "create", "namespace", "late")
    fleet.run("kubectl", "create", "-f", str(file))
    eventually(lambda: len(fleet.get("pods", "-n", "late")) > 1, "its pods are there")
    # The file is edited after the review.
    changed(
        fleet,
        pools__train__driverVersion="latest",
        pools__cpu__labels={"team": "ops"},
        engineers__carol=None,
    )
    refused = up_as_planned(fleet)
    fleet.run("kubectl", "delete", "-f", str(file))
    fleet.run("kubectl", "delete", "namespace", "late")
    assert "work that is lost: RayCluster late" in refused.stderr
    assert (
        "node pool cpu: change node pool cpu: nodeConfig.labels.team: research → ops"
        in refused.stderr
    )
    edited = "Pulumi.fleet.yaml, or a file that it names, is not as it was"
    assert (refused.returncode, edited in refused.stderr) == (2, True)
    assert fleet.state("fleet").read_bytes() == before, "nothing was done"


def test_an_engineers_own_stack_has_its_berth_alone_and_goes_without_a_trace(
    fleet: Project,
) -> None:
    before = fleet.versions()
    fleet.write("other", engineer={"environment": "fleet", "name": "alice"})
    refused = fleet.up("other", check=False)
    assert refused.returncode != 0
    assert "berth-alice" in refused.stdout
    assert "conflict" in refused.stdout
    assert fleet.versions() == before
    (fleet.folder / "stacks" / "Pulumi.other.yaml").unlink()
    fleet.destroy("alice")
    assert fleet.versions() == {
        key: version for key, version in before.items() if "berth-alice" not in key
    }
    assert fleet.resources("alice") == []


def test_failed_resources_are_shown_with_their_reasons_and_no_traceback(fleet: Project) -> None:
    settings = environment(fleet.lab)
    foreign = ["erin", "frank"]
    for name in foreign:
        fleet.run("kubectl", "create", "namespace", f"berth-{name}")
        fleet.run("kubectl", "label", "namespace", f"berth-{name}", "berth/stack=somebody-elses")
    settings["engineers"] |= {name: {} for name in (*foreign, "grace")}
    fleet.write("fleet", environment=settings)
    failed = fleet.up("fleet", check=False)
    assert failed.returncode != 0
    output = failed.stdout + failed.stderr
    progress, diagnostics = output.split("Diagnostics:")
    # The engine starts nothing new after a failure, so the second may not have been tried.
    tried = [
        name
        for name in foreign
        if f"kubernetes:core/v1:Namespace {name} **creating failed**" in progress
    ]
    assert tried
    for name in tried:
        assert f"kubernetes:core/v1:Namespace ({name}):" in diagnostics
    assert diagnostics.count("berth/stack") == len(tried)
    assert "Traceback" not in output
    assert "KeyboardInterrupt" not in output
    for name in foreign:
        fleet.run("kubectl", "delete", "namespace", f"berth-{name}")


@pytest.mark.long
def test_a_pod_that_does_not_fit_is_reported_with_the_reason(fleet: Project) -> None:
    # The sum of cores fits, but no node has as many: `train` leaves 22 on each of its two.
    shape = {
        "environment": "fleet",
        "workers": 1,
        "worker": {"pool": "train", "cpu": 30, "gpus": 0},
    }
    fleet.write("dan", engineer={**shape, "wait": {"timeout": "5s"}})
    failed = fleet.up("dan", check=False)
    assert failed.returncode != 0
    assert (
        "RayCluster berth-dan/dan is not ready after 5s: worker pod cannot be scheduled: 0/4 nodes"
        in failed.stdout
    )
    assert "Insufficient cpu" in failed.stdout
    assert "Traceback" not in failed.stdout + failed.stderr
    (berth,) = fleet.status("dan")["berths"]
    assert not berth["ready"]
    assert "Insufficient cpu" in berth["reasons"][0]
    fleet.destroy("dan")
