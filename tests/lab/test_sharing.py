"""Sharing GPUs, end to end: settings → GPU Operator's values → what nodes advertise → what pods
get.
"""

import copy
import json
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import SMALL, Project, Settings, brought_up, environment_settings, eventually

pytestmark = pytest.mark.lab

TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
PLUGIN, DISCOVERY = "nvidia-device-plugin-daemonset", "gpu-operator-node-feature-discovery-worker"
ENGINEERS = [f"eng-{number}" for number in range(4)]


def environment(lab: Lab) -> Settings:
    return environment_settings(
        lab,
        {
            "cpu": {"machineType": "n2-standard-32", "nodes": 1},
            # The chart's own tolerations do not cover this taint.
            "dev": {"machineType": "a4-highgpu-8g", "nodes": 1, "sharing": "any", "taints": [TAINT]},
            "train": {"machineType": "a4-highgpu-8g", "nodes": 1},
        },
        "gpu",
        sharing={"any": {"kind": "time-slicing", "replicas": 4}},
        # So that one more worker than the settings give can be forced, past the quota.
        isolation={"quotas": False},
        defaults=SMALL | {"worker": SMALL["worker"] | {"pool": "dev"}},
        engineers={name: {"workers": 8} for name in ENGINEERS},
    )


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return brought_up(tmp_path_factory.mktemp("sharing"), lab, "shared", environment(lab))


def node_of(fleet: Project, pool: str) -> dict[str, Any]:
    (node,) = fleet.get("nodes", "-l", f"cloud.google.com/gke-nodepool={pool}")
    return node


def dev_node(fleet: Project) -> dict[str, Any]:
    return node_of(fleet, "dev")


def daemons(fleet: Project, node: dict[str, Any]) -> set[str]:
    """DaemonSets of the GPU Operator that have a pod on a node."""
    where = ["-n", "gpu-operator", f"--field-selector=spec.nodeName={node['metadata']['name']}"]
    owners = [pod["metadata"].get("ownerReferences", [{}])[0] for pod in fleet.get("pods", *where)]
    return {owner["name"] for owner in owners if owner.get("kind") == "DaemonSet"}


def labels(node: dict[str, Any]) -> dict[str, str]:
    return {key: value for key, value in node["metadata"]["labels"].items() if key.startswith("nvidia.com/gpu.")}


def test_one_node_of_eight_gpus_carries_32_workers(fleet: Project) -> None:
    node = dev_node(fleet)
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "32"
    found = labels(node)
    assert (found["nvidia.com/gpu.count"], found["nvidia.com/gpu.replicas"]) == ("8", "4")
    assert found["nvidia.com/gpu.product"] == "NVIDIA-B200-SHARED"
    assert found["nvidia.com/gpu.sharing-strategy"] == "time-slicing"
    assert sum(len(fleet.workers(name)) for name in ENGINEERS) == 32
    clusters = fleet.get("rayclusters", "-A")
    assert {cluster["status"]["state"] for cluster in clusters} == {"ready"}


def test_a_tainted_pool_has_the_operators_daemons(fleet: Project) -> None:
    node = dev_node(fleet)
    assert TAINT in node["spec"]["taints"]
    assert {PLUGIN, DISCOVERY} <= daemons(fleet, node)


def test_a_pool_of_gkes_plugin_keeps_its_eight_gpus_beside_a_shared_pool(fleet: Project) -> None:
    node = node_of(fleet, "train")
    found = node["metadata"]["labels"]
    assert found["feature.node.kubernetes.io/pci-10de.present"] == "true", "the operator sees the GPUs all the same"
    assert found["nvidia.com/gpu.deploy.operands"] == "false"
    assert [name for name in found if name.startswith("nvidia.com/gpu.deploy.")] == ["nvidia.com/gpu.deploy.operands"]
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert daemons(fleet, node) == {DISCOVERY}
    failed = [
        check
        for pool in json.loads(fleet.run("berth", "verify", "gpu", "-s", "shared", "--json", check=False).stdout)[
            "pools"
        ]
        for check in pool["checks"]
        if check["verdict"] == "fail"
    ]
    assert failed == []


def test_a_pool_of_gkes_plugin_that_loses_the_label_is_found_by_the_proof(fleet: Project) -> None:
    name = node_of(fleet, "train")["metadata"]["name"]
    label = "nvidia.com/gpu.deploy.operands"
    fleet.run("kubectl", "label", "node", name, f"{label}-")
    try:
        eventually(lambda: PLUGIN in daemons(fleet, node_of(fleet, "train")), "the operator serves the node")
        report = fleet.run("berth", "verify", "gpu", "-s", "shared", "--pool", "train", "--json", check=False).stdout
        assert (
            f"run: kubectl label nodes --overwrite --selector=cloud.google.com/gke-nodepool=train {label}=false"
            in report
        )
    finally:
        fleet.run("kubectl", "label", "node", name, f"{label}=false")
    eventually(lambda: daemons(fleet, node_of(fleet, "train")) == {DISCOVERY}, "the operator leaves the node alone")
    eventually(
        lambda: node_of(fleet, "train")["status"]["allocatable"].get("nvidia.com/gpu") == "8", "it has 8 GPUs again"
    )


@pytest.mark.long
def test_a_forced_33rd_worker_waits_and_status_has_the_reason(fleet: Project) -> None:
    patch = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 9}]
    patch.append({"op": "replace", "path": "/spec/workerGroupSpecs/0/maxReplicas", "value": 9})
    fleet.run("kubectl", "patch", "raycluster", "eng-0", "-n", "berth-eng-0", "--type=json", "-p", json.dumps(patch))

    def status() -> dict[str, Any]:
        berths = fleet.status("shared")["berths"]
        return dict(next(berth for berth in berths if berth["name"] == "eng-0"))

    eventually(lambda: "Insufficient nvidia.com/gpu" in " ".join(status()["reasons"]), "status says why the 33rd waits")
    assert (status()["workersReady"], status()["workersDesired"]) == (8, 9)
    fleet.up("shared", "--refresh")
    assert len(fleet.workers("eng-0")) == 8


@pytest.mark.long
def test_two_replicas_by_one_setting_and_one_update(fleet: Project) -> None:
    settings = copy.deepcopy(environment(fleet.lab))
    settings["sharing"]["any"]["replicas"] = 2
    settings["engineers"] = {name: {"workers": 8} for name in ENGINEERS[:2]}
    fleet.write("shared", environment=settings)
    fleet.up("shared")
    eventually(lambda: dev_node(fleet)["status"]["allocatable"]["nvidia.com/gpu"] == "16", "the node offers 16 shares")
    assert labels(dev_node(fleet))["nvidia.com/gpu.replicas"] == "2"
    fleet.up("shared", "--expect-no-changes")


@pytest.mark.long
def test_renamed_shares_are_requested_by_their_name(fleet: Project) -> None:
    settings = copy.deepcopy(environment(fleet.lab))
    settings["sharing"]["any"] |= {"renameByDefault": True, "failRequestsGreaterThanOne": True}
    settings["engineers"] = {"eng-0": {"workers": 2}}
    fleet.write("shared", environment=settings)
    fleet.up("shared")
    assert dev_node(fleet)["status"]["allocatable"].get("nvidia.com/gpu.shared") == "32"
    assert "nvidia.com/gpu" not in {
        key for key, count in dev_node(fleet)["status"]["allocatable"].items() if count != "0"
    }
    for pod in fleet.workers("eng-0"):
        assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu.shared"] == "1"
        assert "--num-gpus=1" in json.dumps(pod["spec"]["containers"][0])
