"""NICs and GPUs by claims, end to end: settings → drivers → ResourceSlices → scheduler → `berth
status`.
"""

import json
from typing import Any

import pytest

from tests.lab.conftest import Lab
from tests.lab.project import HEAD, Project, Settings, brought_up, environment_settings, eventually

pytestmark = pytest.mark.lab

ROOT = "resource.kubernetes.io/pcieRoot"
KINDS = "resourceslices,resourceclaims,resourceclaimtemplates,deviceclasses"


def environment(lab: Lab, pool: Settings, cluster: Settings, *operators: str) -> Settings:
    """Environment with one pool and a cluster of its name. Counted GPUs beside claimed NICs, and
    claimed GPUs, are refused in one environment.
    """
    return environment_settings(
        lab,
        {"train": {"machineType": "a4-highgpu-8g"} | pool},
        *operators,
        network={},
        policies={"waived": {"rdma-whole": "the tests have smaller workers too"}},
        defaults={"head": HEAD},
        clusters={"train": cluster | {"worker": {"pool": "train"} | cluster.get("worker", {})}},
    )


def production(lab: Lab) -> Settings:
    return environment(lab, {"nodes": 2, "rdma": "networks"}, {"workers": 2}, "dranet")


def pairs(lab: Lab) -> Settings:
    """GKE's own DRANET, and workers smaller than the node."""
    pool = {"nodes": 1, "rdma": "managed", "gpuAllocation": "dra"}
    cluster = {"workers": 3, "worker": {"gpus": 2, "cpu": 8, "memory": "64Gi"}}
    return environment(lab, pool, cluster, "gpuDra")


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An environment that is up, named `fabric`; each test but the last two leaves it as it found
    it.
    """
    return brought_up(tmp_path_factory.mktemp("fabric"), lab, "fabric", production(lab))


def status(fleet: Project, stack: str = "fabric") -> dict[str, Any]:
    return fleet.status(stack)


def named(listed: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [item for item in listed if item["name"] == name]
    return found


def results(fleet: Project, owner: str) -> dict[str, list[dict[str, Any]]]:
    """Allocation results of the claims of a cluster's pods, by the pod's name."""
    return {
        claim["status"]["reservedFor"][0]["name"]: claim["status"]["allocation"]["devices"]["results"]
        for claim in fleet.get("resourceclaims", "-n", f"berth-{owner}")
        if (claim.get("status") or {}).get("allocation")
    }


def devices(fleet: Project) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Devices of all published slices."""
    return {
        (slice_["spec"]["driver"], slice_["spec"]["pool"]["name"], device["name"]): device["attributes"]
        for slice_ in fleet.get("resourceslices")
        for device in slice_["spec"]["devices"]
    }


def key(result: dict[str, Any]) -> tuple[str, str, str]:
    return (result["driver"], result["pool"], result["device"])


def scale(fleet: Project, workers: int) -> None:
    """Change the number of workers outside Pulumi: settings and quota refuse more workers than
    nodes.
    """
    cores = [{"op": "replace", "path": "/spec/hard/requests.cpu", "value": 500 * workers}]
    memory = [
        {"op": "replace", "path": f"/spec/hard/{item}.memory", "value": "20000Gi"} for item in ("requests", "limits")
    ]
    counts = [
        ("requests.nvidia.com~1gpu", 8 * workers),
        ("count~1resourceclaims.resource.k8s.io", workers),
        ("dranet.deviceclass.resource.k8s.io~1devices", 8 * workers),
    ]
    others = [{"op": "replace", "path": f"/spec/hard/{item}", "value": count} for item, count in counts]
    edit(fleet, "resourcequota/berth", [*cores, *memory, *others])
    path = "/spec/workerGroupSpecs/0"
    edit(fleet, "raycluster/train", [{"op": "replace", "path": f"{path}/maxReplicas", "value": workers}])
    edit(fleet, "raycluster/train", [{"op": "replace", "path": f"{path}/replicas", "value": workers}])


def edit(fleet: Project, what: str, patch: list[dict[str, Any]]) -> None:
    fleet.run("kubectl", "patch", what, "-n", "berth-train", "--type=json", f"--patch={json.dumps(patch)}")


def test_a_production_cluster_has_all_nics_of_two_nodes(fleet: Project) -> None:
    report = status(fleet)
    train = named(report["clusters"], "train")
    assert (train["ready"], train["workersReady"], train["gpus"], train["nics"]) == (True, 2, 16, 16)
    assert [
        (pool["name"], pool["gpus"], pool["gpusInUse"], pool["nics"], pool["nicsInUse"]) for pool in report["pools"]
    ] == [
        ("cpu", 0, 0, 0, 0),
        ("train", 16, 16, 16, 16),
    ]
    given, there = results(fleet, "train"), devices(fleet)
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in fleet.workers("train")}
    assert {pod: {result["pool"] for result in held} for pod, held in given.items()} == {
        pod: {node} for pod, node in nodes.items()
    }
    assert len(set(nodes.values())) == 2
    for held in given.values():
        interfaces = [there[key(result)]["dra.net/ifName"]["string"] for result in held]
        assert sorted(interfaces) == [f"gpu{number}rdma0" for number in range(8)]


def test_workers_without_free_nics_wait_and_status_names_the_holders(fleet: Project) -> None:
    scale(fleet, 3)
    eventually(lambda: len(fleet.workers("train")) == 3, "a third worker is there")

    def reasons() -> list[str]:
        holders = {held[0]["pool"]: pod for pod, held in results(fleet, "train").items()}
        return [f"node {node}: 8 of 8 held by train (pod {pod})" for node, pod in holders.items()]

    def explained() -> bool:
        shown = "; ".join(named(status(fleet)["clusters"], "train")["reasons"])
        return "it wants 8 NICs; " in shown and all(item in shown for item in reasons())

    eventually(explained, "status has the reason")
    scale(fleet, 2)
    eventually(
        lambda: len(results(fleet, "train")) == len(fleet.get("resourceclaims", "-n", "berth-train")) == 2,
        "its claim goes",
    )


def test_without_dranet_status_says_where_to_look(fleet: Project) -> None:
    """DraNet's DaemonSet avoids the nodes of `train`: slices go with its pods, allocated devices
    stay allocated.
    """

    def keep_to(pool: str | None) -> None:
        selector = {"spec": {"template": {"spec": {"nodeSelector": {"cloud.google.com/gke-nodepool": pool}}}}}
        patch = f"--patch={json.dumps(selector)}"
        fleet.run("kubectl", "patch", "daemonset", "dranet", "-n", "kube-system", "--type=merge", patch)

    keep_to("cpu")
    eventually(lambda: named(status(fleet)["pools"], "train")["nics"] == 0, "the slices of its nodes go")
    assert (
        "train has 16 NICs, and its nodes publish 0 of them"
        in fleet.run("berth", "status", "-s", "fabric", check=False).stdout
    )
    (victim, *_) = fleet.workers("train")
    fleet.run("kubectl", "delete", "pod", "-n", "berth-train", victim["metadata"]["name"])
    expected = "no node of pool train has published any NICs: DraNet does not run there"
    eventually(
        lambda: any(expected in reason for reason in named(status(fleet)["clusters"], "train")["reasons"]),
        "status has the new worker's reason",
    )
    keep_to(None)
    eventually(lambda: named(status(fleet)["clusters"], "train")["ready"], "the new worker has NICs")
    assert {len(held) for held in results(fleet, "train").values()} == {8}


def test_a_changed_number_of_nics_is_another_template_that_the_cluster_follows(fleet: Project) -> None:
    (before,) = fleet.get("resourceclaimtemplates", "-n", "berth-train")
    changed = production(fleet.lab)
    changed["clusters"]["train"]["worker"] = {"pool": "train", "gpus": 4, "nics": 4, "cpu": 8, "memory": "64Gi"}
    fleet.write("fabric", environment=changed)
    fleet.up("fabric")
    (after,) = fleet.get("resourceclaimtemplates", "-n", "berth-train")
    assert after["metadata"]["name"] != before["metadata"]["name"]
    assert sorted(len(held) for held in results(fleet, "train").values()) == [4, 4]
    assert named(status(fleet)["clusters"], "train")["nics"] == 8


@pytest.mark.long
def test_gpus_and_nics_come_in_pairs_of_one_pcie_root_by_gkes_own_dranet(fleet: Project) -> None:
    """Runs after the other environment is destroyed: a lab has one cluster."""
    fleet.destroy("fabric")
    eventually(lambda: fleet.get(KINDS, "-A") == [], "slices go with their nodes")
    fleet.write("pairs", environment=pairs(fleet.lab))
    fleet.up("pairs")
    report = status(fleet, "pairs")
    train, pool = named(report["clusters"], "train"), named(report["pools"], "train")
    assert (train["ready"], train["gpus"], train["nics"]) == (True, 6, 6)
    assert [pool[item] for item in ("gpus", "gpusInUse", "nics", "nicsInUse")] == [8, 6, 8, 6]
    assert "dranet" not in [daemon_set["metadata"]["name"] for daemon_set in fleet.get("daemonsets", "-A")]
    given, there = results(fleet, "train"), devices(fleet)
    held = [key(result) for value in given.values() for result in value]
    assert len(given) == 3
    assert len(held) == len(set(held)) == 12
    roots = [
        {there[key(result)][ROOT]["string"] for result in value if result["request"].endswith(f"-{number}")}
        for value in given.values()
        for number in range(2)
    ]
    assert [len(root) for root in roots] == [1] * 6
    (node,) = fleet.get("nodes", "-l", "cloud.google.com/gke-nodepool=train")
    assert "nvidia.com/gpu" not in node["status"]["allocatable"], "a device plugin would hand the same GPUs out again"
    fleet.destroy("pairs")
    eventually(lambda: fleet.get(KINDS, "-A") == [], "slices go with their nodes")
