"""GPUs of pools, shared and whole, and `berth verify gpu`, end to end: settings → GPU Operator's
values → what nodes advertise → what pods get. Real engine, API server, admission, scheduler and Job
controller; simulated containers.
"""

import contextlib
import copy
import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import SMALL, Project, Settings, brought_up, environment_settings, eventually

pytestmark = pytest.mark.lab

NAMESPACE = "berth-verify"
OFF = "gke-no-default-nvidia-gpu-device-plugin"
TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
PLUGIN = "nvidia-device-plugin-daemonset"
DISCOVERY = "gpu-operator-node-feature-discovery-worker"


def environment(lab: Lab) -> Settings:
    return environment_settings(
        lab,
        {
            "dev": {
                "machineType": "a2-highgpu-4g",
                "nodes": 1,
                "taints": [{"key": "team", "value": "ml"}],
            },
            "burst": {"machineType": "a2-highgpu-2g", "nodes": {"min": 0, "max": 1}},
            # The chart's own tolerations do not cover this taint.
            "sliced": {
                "machineType": "a2-highgpu-2g",
                "nodes": 1,
                "sharing": "slices",
                "taints": [TAINT],
            },
            "train": {"machineType": "a2-highgpu-1g", "nodes": 1},
        },
        "gpu",
        sharing={"slices": {"kind": "time-slicing", "replicas": 4}},
        # So that more workers than the settings give can be forced, past the quota.
        isolation={"quotas": False},
        defaults=SMALL | {"worker": {"pool": "dev", "cpu": 1, "memory": "2Gi"}},
        engineers={"bob": {}, "eng": {"workers": 4, "worker": {"pool": "sliced"}}},
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


def allocatable(fleet: Project, pool: str) -> str | None:
    """Number of `nvidia.com/gpu` that the pool's node advertises."""
    found = node_of(fleet, pool)["status"]["allocatable"].get("nvidia.com/gpu")
    return None if found is None else str(found)


def daemons(fleet: Project, pool: str) -> set[str]:
    """DaemonSets of the GPU Operator that have a pod on the pool's node."""
    where = [
        "-n",
        "gpu-operator",
        f"--field-selector=spec.nodeName={node_of(fleet, pool)['metadata']['name']}",
    ]
    owners = [pod["metadata"].get("ownerReferences", [{}])[0] for pod in fleet.get("pods", *where)]
    return {owner["name"] for owner in owners if owner.get("kind") == "DaemonSet"}


@contextlib.contextmanager
def cordoned(fleet: Project, pool: str) -> Iterator[str]:
    name = node_of(fleet, pool)["metadata"]["name"]
    fleet.run("kubectl", "cordon", name)
    yield name
    fleet.run("kubectl", "uncordon", name)


def test_shares_of_two_gpus_carry_workers_and_a_tainted_pool_has_the_operators_daemons(
    fleet: Project,
) -> None:
    node = node_of(fleet, "sliced")
    labels = node["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB-SHARED"
    assert {pod["spec"]["nodeName"] for pod in fleet.workers("eng")} == {node["metadata"]["name"]}
    assert len(fleet.workers("eng")) == 4
    assert {cluster["status"]["state"] for cluster in fleet.get("rayclusters", "-A")} == {"ready"}
    assert TAINT in node["spec"]["taints"]
    assert {PLUGIN, DISCOVERY} <= daemons(fleet, "sliced")


def test_a_pool_of_gkes_plugin_keeps_its_gpus_beside_a_shared_pool(fleet: Project) -> None:
    found = node_of(fleet, "train")["metadata"]["labels"]
    assert found["feature.node.kubernetes.io/pci-10de.present"] == "true", (
        "the operator sees the GPUs all the same"
    )
    assert [name for name in found if name.startswith("nvidia.com/gpu.deploy.")] == [
        "nvidia.com/gpu.deploy.operands"
    ]
    assert found["nvidia.com/gpu.deploy.operands"] == "false"
    assert allocatable(fleet, "train") == "1"
    assert daemons(fleet, "train") == {DISCOVERY}


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

    fleet.run(
        "kubectl", "label", "node", name, "nvidia.com/device-plugin.config=none", "--overwrite"
    )
    eventually(lambda: advertised() == "2", "GPUs are no longer shared")
    code, proof = verify(fleet, "--pool", "sliced")
    fleet.run(
        "kubectl", "label", "node", name, "nvidia.com/device-plugin.config=slices", "--overwrite"
    )
    eventually(lambda: advertised() == "8", "GPUs are shared again")
    found = checks(proof, "sliced")
    assert code == 1
    assert found["capacity of nvidia.com/gpu"] == ("fail", f"{name} has 2; 8 were expected")
    verdict, evidence = found["feature labels"]
    assert verdict == "fail"
    assert "nvidia.com/gpu.replicas is 1, not 4" in evidence
    assert "nvidia.com/gpu.sharing-strategy is none, not time-slicing" in evidence
    # Eng's workers hold more than that.
    assert found["scheduling"][0] == "skipped"


def test_a_pool_of_gkes_plugin_that_loses_the_label_is_found_by_the_proof(fleet: Project) -> None:
    name = node_of(fleet, "train")["metadata"]["name"]
    label = "nvidia.com/gpu.deploy.operands"
    fleet.run("kubectl", "label", "node", name, f"{label}-")
    try:
        eventually(lambda: PLUGIN in daemons(fleet, "train"), "the operator serves the node")
        report = json.dumps(verify(fleet, "--pool", "train")[1])
        assert (
            "run: kubectl label nodes --overwrite --selector=cloud.google.com/gke-nodepool=train"
            f" {label}=false" in report
        )
    finally:
        fleet.run("kubectl", "label", "node", name, f"{label}=false")
    eventually(lambda: daemons(fleet, "train") == {DISCOVERY}, "the operator leaves the node alone")
    eventually(lambda: allocatable(fleet, "train") == "1", "it has its GPU again")


def test_pods_look_for_gpus_that_are_not_theirs(fleet: Project) -> None:
    code, proof = verify(fleet, "--isolation")
    assert code == 0
    found = checks(proof, "sliced")
    assert [pool["pool"] for pool in proof["pools"]] == ["sliced"], (
        "the others have no RuntimeClass of NVIDIA's"
    )
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
    removals = [
        line.partition("kubectl ")[2]
        for line in remaining.stderr.splitlines()
        if "kubectl delete" in line
    ]
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
            (
                "pool 'cpu' (n2-standard-16) has no GPUs; pools with GPUs are burst, dev, sliced,"
                " train"
            ),
        ),
        (
            ["-s", "proved", "--pool", "dev", "--isolation"],
            "pool 'dev' is not served by the GPU Operator",
        ),
        (["-s", "never-up"], "stack never-up has not been brought up"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(
    fleet: Project, options: list[str], message: str
) -> None:
    fleet.write("never-up", environment=environment(fleet.lab))
    refused = fleet.run("berth", "verify", "gpu", *options, check=False)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
    assert NAMESPACE not in namespaces(fleet)


@pytest.mark.long
def test_a_worker_without_a_share_waits_and_status_has_the_reason(fleet: Project) -> None:
    patch = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 9}]
    patch.append({"op": "replace", "path": "/spec/workerGroupSpecs/0/maxReplicas", "value": 9})
    fleet.run(
        "kubectl",
        "patch",
        "raycluster",
        "eng",
        "-n",
        "berth-eng",
        "--type=json",
        "-p",
        json.dumps(patch),
    )

    def status() -> dict[str, Any]:
        berths = fleet.status("proved")["berths"]
        return dict(next(berth for berth in berths if berth["name"] == "eng"))

    eventually(
        lambda: "Insufficient nvidia.com/gpu" in " ".join(status()["reasons"]),
        "status says why the ninth waits",
    )
    assert (status()["workersReady"], status()["workersDesired"]) == (8, 9)
    fleet.up("proved", "--refresh")
    assert len(fleet.workers("eng")) == 4


@pytest.mark.long
def test_two_replicas_by_one_setting_and_one_update(fleet: Project) -> None:
    settings = copy.deepcopy(environment(fleet.lab))
    settings["sharing"]["slices"]["replicas"] = 2
    fleet.write("proved", environment=settings)
    fleet.up("proved")
    eventually(lambda: allocatable(fleet, "sliced") == "4", "the node offers 4 shares")
    assert node_of(fleet, "sliced")["metadata"]["labels"]["nvidia.com/gpu.replicas"] == "2"
    fleet.up("proved", "--expect-no-changes")


@pytest.mark.long
def test_renamed_shares_are_requested_by_their_name(fleet: Project) -> None:
    settings = copy.deepcopy(environment(fleet.lab))
    settings["sharing"]["slices"] |= {"renameByDefault": True, "failRequestsGreaterThanOne": True}
    fleet.write("proved", environment=settings)
    fleet.up("proved")
    advertised = node_of(fleet, "sliced")["status"]["allocatable"]
    assert advertised.get("nvidia.com/gpu.shared") == "8"
    assert advertised.get("nvidia.com/gpu", "0") == "0"
    for pod in fleet.workers("eng"):
        assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu.shared"] == "1"
        assert "--num-gpus=1" in json.dumps(pod["spec"]["containers"][0])
