"""`berth verify gpu`, end to end: real engine, API server, admission, scheduler and Job controller;
simulated containers.
"""

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import Project, Settings, brought_up, environment_settings, eventually

pytestmark = pytest.mark.lab

NAMESPACE = "berth-verify"
OFF = "gke-no-default-nvidia-gpu-device-plugin"


def environment(lab: Lab) -> Settings:
    return environment_settings(
        lab,
        {
            "dev": {"machineType": "a2-highgpu-4g", "nodes": 1, "taints": [{"key": "team", "value": "ml"}]},
            "burst": {"machineType": "a2-highgpu-2g", "nodes": {"min": 0, "max": 1}},
            "sliced": {"machineType": "a2-highgpu-2g", "nodes": 1, "sharing": "slices"},
            "train": {"machineType": "a2-highgpu-1g", "nodes": 1},
        },
        "gpu",
        sharing={"slices": {"kind": "time-slicing", "replicas": 4}},
        defaults={"worker": {"pool": "dev", "cpu": 2, "memory": "4Gi"}},
        engineers={"bob": {}},
        clusters={"train": {"worker": {"pool": "train"}}},
    )


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An environment that is up, named `proved`; each test leaves it as it found it."""
    return brought_up(tmp_path_factory.mktemp("verify"), lab, "proved", environment(lab))


def verify(fleet: Project, *options: str, stack: str = "proved") -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of a run."""
    done = fleet.run("berth", "verify", "gpu", "-s", stack, "--json", *options, check=False)
    assert "Traceback" not in done.stderr
    assert done.stdout, done.stderr
    return done.returncode, dict(json.loads(done.stdout))


def checks(proof: dict[str, Any], pool: str) -> dict[str, tuple[str, str]]:
    (found,) = [item for item in proof["pools"] if item["pool"] == pool]
    return {check["name"]: (check["verdict"], check["evidence"]) for check in found["checks"]}


def namespaces(fleet: Project) -> set[str]:
    return {namespace["metadata"]["name"] for namespace in fleet.get("namespaces")}


def node_of(fleet: Project, pool: str) -> dict[str, Any]:
    (node,) = fleet.get("nodes", "-l", f"cloud.google.com/gke-nodepool={pool}")
    return node


@contextlib.contextmanager
def cordoned(fleet: Project, pool: str) -> Iterator[str]:
    name = node_of(fleet, pool)["metadata"]["name"]
    fleet.run("kubectl", "cordon", name)
    yield name
    fleet.run("kubectl", "uncordon", name)


def test_a_fresh_fleet_passes_and_keeps_no_trace(fleet: Project) -> None:
    before = fleet.versions()
    code, proof = verify(fleet, "--pool", "dev", "--pool", "train")
    assert code == 0
    assert proof["counts"]["fail"] == 0
    name = node_of(fleet, "dev")["metadata"]["name"]
    assert checks(proof, "dev") == {
        "nodes": ("pass", "1 of 1 Ready (settings say 1)"),
        "capacity of nvidia.com/gpu": ("pass", "4 on the node"),
        "allocatable of nvidia.com/gpu": ("pass", "4 on the node"),
        "other GPU resources": ("pass", "none"),
        "feature labels": ("skipped", "GKE's own device plugin serves this pool and sets none"),
        "scheduling": ("pass", f"1 nvidia.com/gpu on {name}"),
        "cuda-vector-add": ("simulated", "simulated: this node runs no containers (KWOK)"),
    }
    # The cluster holds its one GPU: nothing is wrong, and nothing is displaced.
    assert checks(proof, "train")["scheduling"] == (
        "skipped",
        "all 1 nvidia.com/gpu are in use (berth-train 1) and the pool has no more nodes to add",
    )
    assert NAMESPACE not in namespaces(fleet)
    assert fleet.versions() == before


def test_a_pool_without_nodes_grows_for_the_job_and_the_new_node_is_checked(fleet: Project) -> None:
    code, proof = verify(fleet, "--pool", "burst")
    found = checks(proof, "burst")
    assert code == 0
    assert found["nodes"] == ("pass", "1 of 1 Ready (autoscaled, 0 to 1)")
    assert found["allocatable of nvidia.com/gpu"] == ("pass", "2 on the node")
    assert found["cuda-vector-add"][0] == "simulated"


@pytest.mark.long
def test_an_engineers_stack_verifies_the_pool_that_it_uses(fleet: Project) -> None:
    fleet.write("alice", engineer={"environment": "proved"})
    code, proof = verify(fleet, stack="alice")
    assert code == 0
    assert (proof["stack"], proof["environment"]) == ("alice", "proved")
    assert [pool["pool"] for pool in proof["pools"]] == ["dev"]


def test_an_unschedulable_pool_fails_with_the_schedulers_message(fleet: Project) -> None:
    with cordoned(fleet, "dev") as name:
        code, proof = verify(fleet, "--pool", "dev", "--timeout", "5s")
    found = checks(proof, "dev")
    assert code == 1
    assert found["nodes"] == ("pass", f"1 of 1 Ready (settings say 1); cordoned: {name}")
    verdict, evidence = found["scheduling"]
    assert verdict == "fail"
    assert evidence.startswith("not after 5s: pod cannot be scheduled: 0/")
    assert "1 node(s) were unschedulable" in evidence
    assert found["cuda-vector-add"] == ("skipped", "it was not scheduled")
    assert NAMESPACE not in namespaces(fleet)


@pytest.mark.long
def test_a_node_that_lost_its_gpus_fails_with_what_it_has(fleet: Project) -> None:
    name = node_of(fleet, "dev")["metadata"]["name"]

    def advertised() -> bool:
        return "nvidia.com/gpu" in node_of(fleet, "dev")["status"]["allocatable"]

    fleet.run("kubectl", "label", "node", name, f"{OFF}=true")
    eventually(lambda: not advertised(), "the device plugin is gone")
    code, proof = verify(fleet, "--pool", "dev", "--timeout", "3s")
    fleet.run("kubectl", "label", "node", name, f"{OFF}-")
    eventually(advertised, "the device plugin is back")
    found = checks(proof, "dev")
    assert code == 1
    for part in ("capacity", "allocatable"):
        assert found[f"{part} of nvidia.com/gpu"] == ("fail", f"{name} has none; 4 were expected")
    assert found["scheduling"][0] == "fail"
    assert "Insufficient nvidia.com/gpu" in found["scheduling"][1]


def test_a_shared_pool_is_checked_against_its_counts_and_labels(fleet: Project) -> None:
    code, proof = verify(fleet, "--pool", "sliced")
    found = checks(proof, "sliced")
    assert code == 0
    assert found["capacity of nvidia.com/gpu"] == ("pass", "8 on the node")
    verdict, evidence = found["feature labels"]
    assert verdict == "pass"
    for label in ("gpu.count=2", "gpu.replicas=4", "gpu.sharing-strategy=time-slicing"):
        assert f"nvidia.com/{label}" in evidence
    assert found["scheduling"][0] == "pass"


@pytest.mark.long
def test_a_node_that_was_switched_to_another_sharing_by_hand_fails(fleet: Project) -> None:
    name = node_of(fleet, "sliced")["metadata"]["name"]

    def advertised() -> str:
        return str(node_of(fleet, "sliced")["status"]["allocatable"].get("nvidia.com/gpu"))

    fleet.run("kubectl", "label", "node", name, "nvidia.com/device-plugin.config=none", "--overwrite")
    eventually(lambda: advertised() == "2", "GPUs are no longer shared")
    code, proof = verify(fleet, "--pool", "sliced")
    fleet.run("kubectl", "label", "node", name, "nvidia.com/device-plugin.config=slices", "--overwrite")
    eventually(lambda: advertised() == "8", "GPUs are shared again")
    found = checks(proof, "sliced")
    assert code == 1
    assert found["capacity of nvidia.com/gpu"] == ("fail", f"{name} has 2; 8 were expected")
    verdict, evidence = found["feature labels"]
    assert verdict == "fail"
    assert "nvidia.com/gpu.replicas is 1, not 4" in evidence
    assert "nvidia.com/gpu.sharing-strategy is none, not time-slicing" in evidence
    # One whole GPU is more than was promised, not less.
    assert found["scheduling"][0] == "pass"


def test_pods_look_for_gpus_that_are_not_theirs(fleet: Project) -> None:
    code, proof = verify(fleet, "--isolation")
    assert code == 0
    found = checks(proof, "sliced")
    assert [pool["pool"] for pool in proof["pools"]] == ["sliced"], "the others have no RuntimeClass of NVIDIA's"
    assert {name: verdict for name, (verdict, _) in found.items()} == {
        "a request": "simulated",
        "a request and RuntimeClass nvidia": "simulated",
        "RuntimeClass nvidia without a request": "simulated",
        "RuntimeClass nvidia-legacy without a request": "simulated",
        "a container beside one with a request": "simulated",
        "the operator's own pods": "pass",
    }
    assert "only a node with GPUs confirms this" in found["a request"][1]
    assert NAMESPACE not in namespaces(fleet)


@pytest.mark.long
def test_a_kept_run_stays_and_another_run_leaves_it_alone(fleet: Project) -> None:
    remaining = fleet.run("berth", "verify", "gpu", "-s", "proved", "--pool", "dev", "--keep")
    (job,) = fleet.get("jobs", "-n", NAMESPACE)
    assert job["status"]["succeeded"] == 1
    assert verify(fleet, "--pool", "dev")[0] == 0
    (after,) = fleet.get("jobs", "-n", NAMESPACE)
    assert after["metadata"]["uid"] == job["metadata"]["uid"]
    # The hint removes it.
    removals = [line.partition("kubectl ")[2] for line in remaining.stderr.splitlines() if "kubectl delete" in line]
    assert len(removals) == 2
    for command in removals:
        fleet.run("kubectl", *command.split())
    assert NAMESPACE not in namespaces(fleet)


@pytest.mark.long
def test_an_existing_namespace_is_used_and_stays(fleet: Project) -> None:
    fleet.run("kubectl", "create", "namespace", NAMESPACE)
    code, _ = verify(fleet, "--pool", "dev")
    assert code == 0
    assert NAMESPACE in namespaces(fleet)
    assert fleet.get("jobs", "-n", NAMESPACE) == []
    fleet.run("kubectl", "delete", "namespace", NAMESPACE)


def test_a_run_that_is_interrupted_cleans_up(fleet: Project) -> None:
    with cordoned(fleet, "dev"):
        process = subprocess.Popen(
            ["berth", "verify", "gpu", "-s", "proved", "--pool", "dev"],
            cwd=fleet.folder,
            env=fleet.lab.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        eventually(lambda: bool(fleet.get("jobs", "-n", NAMESPACE)), "the Job is there")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert NAMESPACE not in namespaces(fleet)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["-s", "proved", "--pool", "cpu"],
            "pool 'cpu' (n2-standard-16) has no GPUs; pools with GPUs are burst, dev, sliced, train",
        ),
        (["-s", "proved", "--pool", "dev", "--isolation"], "pool 'dev' is not served by the GPU Operator"),
        (["-s", "never-up"], "stack never-up has not been brought up"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(fleet: Project, options: list[str], message: str) -> None:
    fleet.write("never-up", environment=environment(fleet.lab))
    refused = fleet.run("berth", "verify", "gpu", *options, check=False)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
    assert NAMESPACE not in namespaces(fleet)
