"""berth's program, end to end: the real engine, API server, scheduler and KubeRay operator."""

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import Project, Settings, brought_up, environment_settings, eventually

pytestmark = pytest.mark.lab

RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
NAMESPACE = "kubernetes:core/v1:Namespace"
QUOTA = "kubernetes:core/v1:ResourceQuota"
BERTH = "berth:index:Berth"


def environment(lab: Lab) -> Settings:
    return environment_settings(
        lab,
        {
            "cpu": {"machineType": "n2-standard-16", "nodes": 2},
            "dev": {"machineType": "a4-highgpu-8g", "nodes": 1},
            "train": {"machineType": "a4-highgpu-8g", "nodes": 2},
        },
        defaults={"worker": {"pool": "dev"}},
        engineers={"bob": {"workers": 2}, "carol": {}},
        clusters={"train": {"workers": 2, "worker": {"pool": "train"}}},
    )


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An environment that is up, named `env`; most tests leave it as they found it."""
    return brought_up(tmp_path_factory.mktemp("fleet"), lab, "env", environment(lab))


def uids(fleet: Project, owner: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in fleet.workers(owner)}


def status(fleet: Project, stack: str) -> dict[str, Any]:
    return dict(json.loads(fleet.run("berth", "status", "-s", stack, "--json", check=False).stdout))


def test_the_fleet_comes_up_ready(fleet: Project) -> None:
    clusters = {cluster["metadata"]["name"]: cluster["status"] for cluster in fleet.get("rayclusters", "-A")}
    assert {name: (cluster["state"], cluster["readyWorkerReplicas"]) for name, cluster in clusters.items()} == {
        "bob": ("ready", 2),
        "carol": ("ready", 1),
        "train": ("ready", 2),
    }


def test_free_gpus_are_those_that_no_pod_holds(fleet: Project) -> None:
    found = {offer["pool"]: offer for offer in json.loads(fleet.run("berth", "gpus", "-s", "env", "--json").stdout)}
    assert {pool: (offer["free"], offer["count"]) for pool, offer in found.items()} == {"dev": (5, 8), "train": (0, 16)}


def test_a_second_up_changes_nothing(fleet: Project) -> None:
    before = fleet.versions()
    state = fleet.lab.state("env").read_bytes()
    assert "✓ env is up: " in fleet.run("berth", "up", "-s", "env", "--yes").stdout
    assert fleet.lab.state("env").read_bytes() == state, "the preview is enough where everything is ready"
    assert fleet.versions() == before


def test_a_production_cluster_has_a_node_for_each_worker(fleet: Project) -> None:
    workers = fleet.workers("train")
    assert len({pod["spec"]["nodeName"] for pod in workers}) == 2
    for pod in workers:
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        assert limits["nvidia.com/gpu"] == "8"
    nodes = {node["metadata"]["name"]: node for node in fleet.get("nodes")}
    assert {
        nodes[pod["spec"]["nodeName"]]["metadata"]["labels"]["cloud.google.com/gke-nodepool"] for pod in workers
    } == {"train"}


def test_heads_have_no_gpu_and_run_on_a_pool_without_gpus(fleet: Project) -> None:
    heads = fleet.get("pods", "-A", "-l", "ray.io/node-type=head")
    assert len(heads) == 3
    for pod in heads:
        container = pod["spec"]["containers"][0]
        assert "nvidia.com/gpu" not in container["resources"]["limits"]
        assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
        assert pod["spec"]["nodeSelector"] == {"cloud.google.com/gke-nodepool": "cpu"}


def test_status_agrees_with_the_api_server(fleet: Project) -> None:
    report = status(fleet, "env")
    assert report["stack"] == "env"
    assert [(pool["name"], pool["nodes"], pool["gpus"], pool["gpusInUse"]) for pool in report["pools"]] == [
        ("cpu", 2, 0, 0),
        ("dev", 1, 8, 3),
        ("train", 2, 16, 16),
    ]
    asked = {cluster["metadata"]["name"]: cluster["status"] for cluster in fleet.get("rayclusters", "-A")}
    for berth in (*report["berths"], *report["clusters"]):
        assert berth["ready"]
        assert berth["state"] == asked[berth["rayCluster"]]["state"]
        assert berth["workersReady"] == asked[berth["rayCluster"]]["readyWorkerReplicas"]
        assert berth["workersDesired"] == asked[berth["rayCluster"]]["desiredWorkerReplicas"]
    assert {item["name"]: item["gpus"] for item in report["berths"]} == {"bob": 2, "carol": 1}


def test_engineers_come_and_are_renamed_and_nobody_else_is_touched(fleet: Project) -> None:
    """Bob's number of workers changes in the same updates."""
    settings = environment(fleet.lab)

    def of_others() -> dict[str, str]:
        own = (" berth-bob/", "berth-dave", "berth-david")
        return {key: version for key, version in fleet.versions().items() if not any(name in key for name in own)}

    before, pods_of_bob = of_others(), uids(fleet, "bob")
    settings["engineers"] |= {"bob": {"workers": 3}, "dave": {}}
    fleet.write("env", environment=settings)
    plan = fleet.preview("env")
    added = {f"{BERTH}::dave": "create", f"{NAMESPACE}::dave": "create", f"{RAY_CLUSTER}::dave": "create"}
    assert plan.items() >= added.items()
    changed = {name: step for name, step in plan.items() if "dave" not in name}
    assert changed == {f"{RAY_CLUSTER}::bob": "update", f"{QUOTA}::bob-berth": "update"}
    fleet.up("env")
    assert len(fleet.workers("dave")) == 1
    assert len(uids(fleet, "bob")) == 3
    assert uids(fleet, "bob") > pods_of_bob
    assert of_others() == before

    settings["engineers"]["david"] = settings["engineers"].pop("dave")
    settings["engineers"]["bob"] = {"workers": 2}
    fleet.write("env", environment=settings)
    fleet.up("env")
    names = {namespace["metadata"]["name"] for namespace in fleet.get("namespaces")}
    assert "berth-david" in names
    assert "berth-dave" not in names
    assert len(uids(fleet, "bob")) == 2
    assert of_others() == before
    fleet.write("env", environment=environment(fleet.lab))


def test_an_engineers_own_stack_comes_and_goes_without_a_trace(fleet: Project) -> None:
    before = fleet.versions()
    fleet.write("alice", engineer={"environment": "env", "workers": 2})
    fleet.up("alice")
    assert len(fleet.workers("alice")) == 2
    assert fleet.outputs("alice") == {"namespace": "berth-alice", "rayCluster": "alice"}
    assert {key: version for key, version in fleet.versions().items() if "berth-alice" not in key} == before
    (berth,) = status(fleet, "alice")["berths"]
    assert (berth["name"], berth["stack"], berth["ready"]) == ("alice", "alice", True)
    # Another stack cannot have the same berth.
    fleet.write("other", engineer={"environment": "env", "name": "alice"})
    refused = fleet.up("other", check=False)
    assert refused.returncode != 0
    assert "berth-alice" in refused.stdout
    assert "conflict" in refused.stdout
    assert len(fleet.workers("alice")) == 2
    (fleet.folder / "stacks" / "Pulumi.other.yaml").unlink()
    fleet.destroy("alice")
    assert fleet.versions() == before
    assert fleet.resources("alice") == []


@pytest.mark.long
def test_a_pod_that_does_not_fit_is_reported_with_the_reason(fleet: Project) -> None:
    # The sum of cores fits, but no node has as many: `train` leaves 22 on each of its two.
    shape = {"environment": "env", "workers": 1, "worker": {"pool": "train", "cpu": 30, "gpus": 0}}
    fleet.write("alice", engineer={**shape, "wait": {"timeout": "5s"}})
    failed = fleet.up("alice", check=False)
    assert failed.returncode != 0
    assert (
        "RayCluster berth-alice/alice is not ready after 5s: worker pod cannot be scheduled: 0/5 nodes" in failed.stdout
    )
    assert "Insufficient cpu" in failed.stdout
    assert "Traceback" not in failed.stdout + failed.stderr
    (berth,) = status(fleet, "alice")["berths"]
    assert not berth["ready"]
    assert "Insufficient cpu" in berth["reasons"][0]
    fleet.destroy("alice")


def test_bad_settings_register_nothing_and_are_reported_as_by_check(fleet: Project) -> None:
    before, settings = fleet.versions(), environment(fleet.lab)
    settings["engineers"]["bob"] = {"worker": {"pool": "devv"}, "wrokers": 1}
    settings["engineers"] |= {f"eng-{number}": {"worker": {"gpus": 4}} for number in range(3)}
    fleet.write("env", environment=settings)
    refused = fleet.up("env", check=False)
    checked = fleet.run("berth", "check", "env", check=False)
    assert refused.returncode != 0
    assert checked.returncode == 2
    problems = [line.strip() for line in checked.stderr.splitlines()[1:]]
    assert len(problems) == 3
    for problem in problems:
        assert problem in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr
    assert fleet.versions() == before
    fleet.write("env", environment=environment(fleet.lab))


def test_refresh_finds_drift_and_up_undoes_it_and_an_engineer_leaves(fleet: Project) -> None:
    """The settings have no david any more."""
    before = {key: version for key, version in fleet.versions().items() if "berth-carol/" in key}
    fleet.run("kubectl", "label", "namespace", "berth-bob", "berth/engineer=mallory", "--overwrite")
    # The plugin takes fields of kubectl's managers over, but not in a preview.
    fleet.up("env", "--refresh")
    (namespace,) = fleet.get("namespaces", "-l", "berth/engineer=bob")
    assert namespace["metadata"]["name"] == "berth-bob"
    after = fleet.versions()
    assert not any("berth-david" in key for key in after)
    assert {key: version for key, version in after.items() if "berth-carol/" in key} == before
    assert before


@pytest.mark.long
def test_an_update_that_was_killed_is_completed_by_the_next(fleet: Project) -> None:
    settings = environment(fleet.lab)
    engineers = [f"eng-{number}" for number in range(4)]
    settings["engineers"] |= {name: {} for name in engineers}
    fleet.write("env", environment=settings)
    process = subprocess.Popen(
        ["pulumi", "up", "-s", "env", "--yes", "--skip-preview"],
        cwd=fleet.folder,
        env=fleet.lab.env,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    eventually(
        lambda: any(cluster["metadata"]["name"] in engineers for cluster in fleet.get("rayclusters", "-A")),
        "a new RayCluster appears",
    )
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    fleet.run("pulumi", "cancel", "-s", "env", "--yes")
    fleet.up("env")
    fleet.up("env", "--expect-no-changes")
    ready = {
        cluster["metadata"]["name"]
        for cluster in fleet.get("rayclusters", "-A")
        if cluster["status"]["state"] == "ready"
    }
    assert ready >= set(engineers)


def test_failed_resources_are_shown_with_their_reasons_and_no_traceback(fleet: Project) -> None:
    settings = environment(fleet.lab)
    foreign = ["erin", "frank"]
    for name in foreign:
        fleet.run("kubectl", "create", "namespace", f"berth-{name}")
        fleet.run("kubectl", "label", "namespace", f"berth-{name}", "berth/stack=somebody-elses")
    settings["engineers"] |= {name: {} for name in (*foreign, "grace")}
    fleet.write("env", environment=settings)
    failed = fleet.up("env", check=False)
    assert failed.returncode != 0
    output = failed.stdout + failed.stderr
    progress, diagnostics = output.split("Diagnostics:")
    # The engine starts nothing new after a failure, so the second may not have been tried.
    tried = [name for name in foreign if f"kubernetes:core/v1:Namespace {name} **creating failed**" in progress]
    assert tried
    for name in tried:
        assert f"kubernetes:core/v1:Namespace ({name}):" in diagnostics
    assert diagnostics.count("berth/stack") == len(tried)
    assert "Traceback" not in output
    assert "KeyboardInterrupt" not in output
    for name in foreign:
        fleet.run("kubectl", "delete", "namespace", f"berth-{name}")
