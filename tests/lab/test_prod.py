"""Shipped production environment, unmodified, in the lab: created, changed, drifted, and removed
without a trace; NICs and GPUs by claims: settings → drivers → ResourceSlices → scheduler → `berth
status`.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.hardware.machines import RDMA_NICS
from berth.lab.plugins.gcp.store import Store
from tests.lab.conftest import Lab
from tests.lab.project import CLONE, HEAD, Project, brought_up, environment_settings, eventually

pytestmark = pytest.mark.lab

STACK = "prod"
DRIFTED = 4

ROOT = "resource.kubernetes.io/pcieRoot"
KINDS = "resourceslices,resourceclaims,resourceclaimtemplates,deviceclasses"
FIREWALL = "gcp:compute/firewall:Firewall"
UNPROTECTED = {"deletion-protection": "it is being taken down"}


def shipped() -> dict[str, Any]:
    """The settings of stacks/Pulumi.prod.yaml."""
    text = (CLONE / "stacks" / f"Pulumi.{STACK}.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text)["config"]["berth:environment"])


@pytest.fixture(scope="module")
def project(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The clone's program, with the shipped file as it is."""
    project = Project.make(tmp_path_factory.mktemp("prod") / "project", lab)
    shutil.copy2(CLONE / "stacks" / f"Pulumi.{STACK}.yaml", project.folder / "stacks")
    project.run("pulumi", "stack", "init", STACK, "--no-select")
    return project


@pytest.fixture(scope="module")
def prod(project: Project) -> Project:
    """Project that is up. The last test destroys it."""
    project.up(STACK)
    return project


def in_the_cloud(project: Project) -> dict[str, list[str]]:
    """Names of the simulated project's resources, by collection."""
    found: dict[str, list[str]] = {}
    for record in Store(project.lab.home.cloud).list():
        found.setdefault(record.id.split("/")[-2], []).append(record.name)
    return found


def berth_preview(project: Project, *options: str) -> tuple[int, dict[str, Any]]:
    done = project.run("berth", "preview", "-s", STACK, "--json", *options, check=False)
    assert done.stdout, done.stderr
    return done.returncode, dict(json.loads(done.stdout))


@pytest.mark.long
def test_gpus_and_nics_come_in_pairs_of_one_pcie_root_by_gkes_own_dranet(
    lab: Lab, tmp_path: Path
) -> None:
    """GKE's own DRANET, with workers smaller than a node. One cluster a lab: prod comes after."""
    worker = {"pool": "train", "gpus": 2, "cpu": 8, "memory": "64Gi"}
    settings = environment_settings(
        lab,
        {
            "train": {
                "machineType": "a4-highgpu-8g",
                "nodes": 1,
                "rdma": "managed",
                "gpuAllocation": "dra",
            }
        },
        "gpuDra",
        network={},
        policies={"waived": {"rdma-whole": "the test has smaller workers"}},
        defaults={"head": HEAD},
        clusters={"train": {"workers": 3, "worker": worker}},
    )
    fleet = brought_up(tmp_path, lab, "pairs", settings)
    report = fleet.status("pairs")
    train = named(report["clusters"], "train")
    pool = named(report["pools"], "train")
    assert (train["ready"], train["gpus"], train["nics"]) == (True, 6, 6)
    assert [pool[item] for item in ("gpus", "gpusInUse", "nics", "nicsInUse")] == [8, 6, 8, 6]
    assert "dranet" not in [
        daemon_set["metadata"]["name"] for daemon_set in fleet.get("daemonsets", "-A")
    ]
    given = results(fleet, "train")
    there = devices(fleet)
    held = [key(result) for value in given.values() for result in value]
    assert len(given) == 3
    assert len(held) == len(set(held)) == 12
    roots = [
        {
            there[key(result)][ROOT]["string"]
            for result in value
            if result["request"].endswith(f"-{number}")
        }
        for value in given.values()
        for number in range(2)
    ]
    assert [len(root) for root in roots] == [1] * 6
    (node,) = fleet.get("nodes", "-l", "cloud.google.com/gke-nodepool=train")
    assert "nvidia.com/gpu" not in node["status"]["allocatable"], (
        "a device plugin would hand the same GPUs out again"
    )
    fleet.destroy("pairs")
    eventually(lambda: fleet.get(KINDS, "-A") == [], "slices go with their nodes")


def test_preview_needs_no_network_and_no_credentials(project: Project) -> None:
    command = ["pulumi", "preview", "-s", STACK, "--non-interactive"]
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"):
        # A network namespace with nothing in it but loopback, which the engine needs to speak to
        # its plugins.
        command = ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {' '.join(command)}"]
    done = project.run(*command)
    assert "error" not in done.stderr
    assert "gcp:container:NodePool" in done.stdout


def test_it_comes_up_as_it_is_shipped(prod: Project) -> None:
    cloud = in_the_cloud(prod)
    assert sorted(cloud["nodePools"]) == ["cpu", "dev", "train"]
    assert len(cloud["networks"]) == 3, "primary, second gVNIC, RDMA"
    assert len(cloud["subnetworks"]) == 2 + RDMA_NICS
    assert not [name for name in cloud["firewalls"] if "rdma" in name]
    nodes = prod.get("nodes", "-l", "cloud.google.com/gke-nodepool=train")
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8", "8"]
    clusters = {cluster["metadata"]["name"]: cluster for cluster in prod.get("rayclusters", "-A")}
    assert clusters["train"]["status"]["state"] == "ready"
    daemons = {
        daemon_set["metadata"]["name"]: daemon_set["status"]["numberReady"]
        for daemon_set in prod.get("daemonsets", "-A")
    }
    assert daemons == {"dranet": 2, "nccl-rdma-installer": 2}, (
        "on the nodes of train, and nowhere else"
    )
    claims = [
        claim["status"]["allocation"]["devices"]["results"]
        for claim in prod.get("resourceclaims", "-A")
    ]
    assert [{result["driver"] for result in claim} for claim in claims] == [{"dra.net"}] * 2
    assert [len(claim) for claim in claims] == [RDMA_NICS] * 2


def test_the_development_pool_scales_up_from_zero(prod: Project) -> None:
    eventually(
        lambda: len(prod.get("nodes", "-l", "cloud.google.com/gke-nodepool=dev")) == 1,
        "a node for bob",
    )
    eventually(
        lambda: prod.run("berth", "status", "-s", STACK, check=False).returncode == 0,
        "all berths ready",
    )


def test_the_fabric_is_proven_but_for_what_containers_would_do(prod: Project) -> None:
    done = prod.run("berth", "verify", "fabric", "-s", STACK, "--cluster", "train", "--json")
    found = {
        check["name"]: (check["verdict"], check["evidence"])
        for check in json.loads(done.stdout)["checks"]
    }
    assert found["claims"] == ("pass", f"{RDMA_NICS} NICs of class dranet in each of 2 workers")
    assert found["scheduling"][0] == "pass"
    assert found["all-reduce"] == ("simulated", "simulated: this node runs no containers (KWOK)")


def named(listed: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [item for item in listed if item["name"] == name]
    return found


def results(prod: Project, owner: str) -> dict[str, list[dict[str, Any]]]:
    """Allocation results of the claims of a cluster's pods, by the pod's name."""
    return {
        claim["status"]["reservedFor"][0]["name"]: claim["status"]["allocation"]["devices"][
            "results"
        ]
        for claim in prod.get("resourceclaims", "-n", f"berth-{owner}")
        if (claim.get("status") or {}).get("allocation")
    }


def devices(prod: Project) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Devices of all published slices."""
    return {
        (slice_["spec"]["driver"], slice_["spec"]["pool"]["name"], device["name"]): device[
            "attributes"
        ]
        for slice_ in prod.get("resourceslices")
        for device in slice_["spec"]["devices"]
    }


def key(result: dict[str, Any]) -> tuple[str, str, str]:
    return (result["driver"], result["pool"], result["device"])


def scale(prod: Project, workers: int) -> None:
    """Change the number of workers outside Pulumi: settings and quota refuse more workers than
    nodes.
    """
    cores = [
        {"op": "replace", "path": f"/spec/hard/{item}.cpu", "value": 500 * workers}
        for item in ("requests", "limits")
    ]
    memory = [
        {"op": "replace", "path": f"/spec/hard/{item}.memory", "value": "20000Gi"}
        for item in ("requests", "limits")
    ]
    counts = [
        ("requests.nvidia.com~1gpu", 8 * workers),
        ("count~1resourceclaims.resource.k8s.io", workers),
        ("dranet.deviceclass.resource.k8s.io~1devices", 8 * workers),
    ]
    others = [
        {"op": "replace", "path": f"/spec/hard/{item}", "value": count} for item, count in counts
    ]
    edit(prod, "resourcequota/berth", [*cores, *memory, *others])
    path = "/spec/workerGroupSpecs/0"
    edit(
        prod,
        "raycluster/train",
        [{"op": "replace", "path": f"{path}/maxReplicas", "value": workers}],
    )
    edit(
        prod, "raycluster/train", [{"op": "replace", "path": f"{path}/replicas", "value": workers}]
    )


def edit(prod: Project, what: str, patch: list[dict[str, Any]]) -> None:
    prod.run(
        "kubectl", "patch", what, "-n", "berth-train", "--type=json", f"--patch={json.dumps(patch)}"
    )


def test_a_production_cluster_has_all_nics_of_two_nodes(prod: Project) -> None:
    report = prod.status(STACK)
    train = named(report["clusters"], "train")
    assert (train["ready"], train["workersReady"], train["gpus"], train["nics"]) == (
        True,
        2,
        16,
        16,
    )
    pool = named(report["pools"], "train")
    assert [pool[item] for item in ("gpus", "gpusInUse", "nics", "nicsInUse")] == [16] * 4
    given = results(prod, "train")
    there = devices(prod)
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in prod.workers("train")}
    assert {pod: {result["pool"] for result in held} for pod, held in given.items()} == {
        pod: {node} for pod, node in nodes.items()
    }
    assert len(set(nodes.values())) == 2
    for held in given.values():
        interfaces = [there[key(result)]["dra.net/ifName"]["string"] for result in held]
        assert sorted(interfaces) == [f"gpu{number}rdma0" for number in range(8)]


def test_workers_without_free_nics_wait_and_status_names_the_holders(prod: Project) -> None:
    scale(prod, 3)
    eventually(lambda: len(prod.workers("train")) == 3, "a third worker is there")

    def reasons() -> list[str]:
        holders = {held[0]["pool"]: pod for pod, held in results(prod, "train").items()}
        return [f"node {node}: 8 of 8 held by train (pod {pod})" for node, pod in holders.items()]

    def explained() -> bool:
        shown = "; ".join(named(prod.status(STACK)["clusters"], "train")["reasons"])
        return "it wants 8 NICs; " in shown and all(item in shown for item in reasons())

    eventually(explained, "status has the reason")
    scale(prod, 2)
    eventually(
        lambda: (
            len(results(prod, "train")) == len(prod.get("resourceclaims", "-n", "berth-train")) == 2
        ),
        "its claim goes",
    )


@pytest.mark.long
def test_without_dranet_status_says_where_to_look(prod: Project) -> None:
    """DraNet's DaemonSet avoids the nodes of `train`: slices go with its pods, allocated devices
    stay allocated.
    """

    def keep_to(pool: str | None) -> None:
        selector = {
            "spec": {
                "template": {"spec": {"nodeSelector": {"cloud.google.com/gke-nodepool": pool}}}
            }
        }
        patch = f"--patch={json.dumps(selector)}"
        prod.run(
            "kubectl", "patch", "daemonset", "dranet", "-n", "kube-system", "--type=merge", patch
        )

    keep_to("cpu")
    eventually(
        lambda: named(prod.status(STACK)["pools"], "train")["nics"] == 0,
        "the slices of its nodes go",
    )
    assert (
        "train has 16 NICs, and its nodes publish 0 of them"
        in prod.run("berth", "status", "-s", STACK, check=False).stdout
    )
    (victim, *_) = prod.workers("train")
    prod.run("kubectl", "delete", "pod", "-n", "berth-train", victim["metadata"]["name"])
    expected = "no node of pool train has published any NICs: DraNet does not run there"
    eventually(
        lambda: any(
            expected in reason
            for reason in named(prod.status(STACK)["clusters"], "train")["reasons"]
        ),
        "status has the new worker's reason",
    )
    keep_to(None)
    eventually(
        lambda: named(prod.status(STACK)["clusters"], "train")["ready"], "the new worker has NICs"
    )
    assert {len(held) for held in results(prod, "train").values()} == {8}


def test_a_changed_number_of_nics_is_another_template_that_the_cluster_follows(
    prod: Project,
) -> None:
    (before,) = prod.get("resourceclaimtemplates", "-n", "berth-train")
    changed = shipped()
    changed["clusters"]["train"]["worker"] = {
        "pool": "train",
        "gpus": 4,
        "nics": 4,
        "cpu": 8,
        "memory": "64Gi",
    }
    changed["policies"]["waived"]["rdma-whole"] = "the workers are smaller"
    prod.write(STACK, environment=changed)
    prod.up(STACK)
    (after,) = prod.get("resourceclaimtemplates", "-n", "berth-train")
    assert after["metadata"]["name"] != before["metadata"]["name"]
    assert sorted(len(held) for held in results(prod, "train").values()) == [4, 4]
    assert named(prod.status(STACK)["clusters"], "train")["nics"] == 8


def test_it_is_protected_has_drift_only_where_something_is_gone_grows_and_then_leaves_nothing(
    prod: Project,
) -> None:
    store = Store(prod.lab.home.cloud)
    (firewall, *_) = store.list("firewalls")
    store.remove(firewall.id)
    drift, plan = berth_preview(prod, "--refresh", "--expect-no-changes")
    assert drift == DRIFTED
    assert [(change["operation"], change["type"]) for change in plan["changes"]] == [
        ("create", FIREWALL)
    ]
    there = prod.resources(STACK)
    refused = prod.run("pulumi", "destroy", "-s", STACK, "--yes", check=False)
    assert refused.returncode != 0
    assert "because it is protected" in refused.stdout + refused.stderr
    ours = ("berth", "destroy", "-s", STACK, "--yes", "--allow-destroy")
    refused = prod.run(*ours, check=False)
    assert (refused.returncode, "has deletion protection" in refused.stderr) == (2, True)
    assert prod.resources(STACK) == there, "it is refused before anything is deleted"
    unprotected = shipped()["cluster"] | {"deletionProtection": False}
    waived = {"waived": shipped()["policies"]["waived"] | UNPROTECTED}
    pools = shipped()["pools"] | {"train": shipped()["pools"]["train"] | {"nodes": 3}}
    prod.write(
        STACK, environment=shipped() | {"pools": pools, "cluster": unprotected, "policies": waived}
    )
    prod.run("kubectl", "label", "namespace", "berth-bob", "berth/engineer=mallory", "--overwrite")
    prod.up(STACK, "--refresh")
    assert prod.get("namespaces", "-l", "berth/engineer=bob"), (
        "the label is as the settings have it"
    )
    assert firewall.name in in_the_cloud(prod)["firewalls"]
    assert len(prod.get("nodes", "-l", "cloud.google.com/gke-nodepool=train")) == 3
    prod.destroy(STACK)
    assert in_the_cloud(prod) == {}
    assert prod.resources(STACK) == []
