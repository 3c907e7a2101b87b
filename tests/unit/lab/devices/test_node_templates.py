"""Decisions of the lab's autoscaler, row by row beside those that the real one's source shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from berth.lab.devices.node_templates import Templates, from_machine, stopped, without_gpu
from berth.lab.devices.scaler import IDLE_VARIABLE
from berth.lab.plugins.gcp.nodes import manifest, resize
from berth.lab.plugins.gcp.store import Record
from tests.unit.lab.devices.test_autoscaler import pod
from tests.unit.lab.devices.test_scaler import NIC, World, claiming

PATH = "projects/p/locations/us-central1-b/clusters/c/nodePools/gpus"
ZONE = "us-central1-b"
OPERATOR = {"gke-no-default-nvidia-gpu-device-plugin": "true"}
CLAIMED = OPERATOR | {"cloud.google.com/gke-nvidia-gpu-dra-driver": "true"}
MANAGED = {"cloud.google.com/gke-networking-dra-driver": "true"}

# Files of kubernetes/autoscaler at 55c37cd5 (gce/) and of kubernetes-sigs/cluster-autoscaler at 33c3f97b (pkg/).
CAPACITY = "gce/templates.go BuildCapacity"
NO_SLICES = "gce/gce_cloud_provider.go TemplateNodeInfo"
UNREADY = "pkg/processors/customresources/gpu_processor.go FilterOutNodesWithUnreadyResources"
COPIED = "pkg/processors/nodeinfosprovider/mixed_nodeinfos_processor.go Process"
BY_LABEL = "docs.cloud.google.com set-up-dra (GKE's own label; believed)"


@dataclass(frozen=True)
class Row:
    """One decision.

    Attributes:
        source: file and function of the real autoscaler.
        decision: whether the pool grows for the pending pod.
        asks: resources of the pending pod, or the class and number of the devices that it claims.
        labels: labels of the pool.
        shows: nvidia.com resources of the pool's node; None where the pool has no node.
        nics: NICs in the ResourceSlices of the pool's node.
        before: what the pool's node showed before the pool went to zero nodes.
    """

    source: str
    decision: Literal["grows", "stays"]
    asks: dict[str, int] | tuple[str, int]
    labels: dict[str, str] = field(default_factory=dict)
    shows: dict[str, str] | None = None
    nics: int = 0
    before: dict[str, str] | None = None


WHOLE = {"nvidia.com/gpu": 8}
SHARES = {"nvidia.com/gpu.shared": 1}
INSTANCE = {"nvidia.com/mig-1g.23gb": 1}
NICS, GPUS = ("dranet", 8), ("gpu.nvidia.com", 8)

TABLE = {
    "GKE's GPUs, from zero": Row(CAPACITY, "grows", WHOLE),
    "the operator's GPUs, from zero": Row(CAPACITY, "grows", WHOLE, OPERATOR),
    "more shares than GPUs, from zero": Row(CAPACITY, "stays", {"nvidia.com/gpu": 9}, OPERATOR),
    "more shares than GPUs, beside a node": Row(
        COPIED, "grows", {"nvidia.com/gpu": 9}, OPERATOR, shows={"nvidia.com/gpu": "32"}
    ),
    "more shares than GPUs, after a node": Row(
        COPIED, "grows", {"nvidia.com/gpu": 9}, OPERATOR, before={"nvidia.com/gpu": "32"}
    ),
    "renamed shares, from zero": Row(CAPACITY, "stays", SHARES, OPERATOR),
    "renamed shares, beside a node": Row(UNREADY, "stays", SHARES, OPERATOR, shows={"nvidia.com/gpu.shared": "32"}),
    "renamed shares, after a node": Row(UNREADY, "stays", SHARES, OPERATOR, before={"nvidia.com/gpu.shared": "32"}),
    "renamed shares beside a whole GPU's name that is 0": Row(
        UNREADY, "stays", SHARES, OPERATOR, shows={"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "32"}
    ),
    "mixed MIG, from zero": Row(CAPACITY, "stays", INSTANCE, OPERATOR),
    "mixed MIG, beside a node": Row(UNREADY, "stays", INSTANCE, OPERATOR, shows={"nvidia.com/mig-1g.23gb": "56"}),
    "mixed MIG beside whole GPUs of one node": Row(
        COPIED, "grows", INSTANCE, OPERATOR, shows={"nvidia.com/gpu": "4", "nvidia.com/mig-1g.23gb": "28"}
    ),
    "single MIG, from zero": Row(CAPACITY, "grows", {"nvidia.com/gpu": 1}, OPERATOR),
    "single MIG with more instances than GPUs, from zero": Row(CAPACITY, "stays", {"nvidia.com/gpu": 9}, OPERATOR),
    "DraNet's NICs, from zero": Row(NO_SLICES, "stays", NICS),
    "DraNet's NICs, beside a node": Row(COPIED, "grows", NICS, shows={"nvidia.com/gpu": "8"}, nics=8),
    "DraNet's NICs, after a node": Row(COPIED, "grows", NICS, before={"nvidia.com/gpu": "8"}, nics=8),
    "managed NICs, from zero": Row(NO_SLICES, "stays", ("mrdma.google.com", 8), MANAGED),
    "managed NICs, beside a node": Row(
        COPIED, "grows", ("mrdma.google.com", 8), MANAGED, shows={"nvidia.com/gpu": "8"}, nics=8
    ),
    "NICs beside a node that has published none": Row(COPIED, "stays", NICS, shows={"nvidia.com/gpu": "8"}),
    "claimed GPUs, from zero": Row(BY_LABEL, "grows", GPUS, CLAIMED),
    "claimed GPUs without the label, from zero": Row(NO_SLICES, "stays", GPUS, OPERATOR),
}


def full(node: str, allocatable: dict[str, str]) -> list[dict[str, Any]]:
    """A pod that leaves nothing of a node."""
    container = {"resources": {"requests": {"pods": "109", **allocatable}}}
    return [pod(node=node, phase="Running", name="full", containers=[container])]


def put(world: World, row: Row, size: int) -> None:
    gpus = [{"type": "nvidia-b200", "count": 8, "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}]
    config = {"machineType": "a4-highgpu-8g", "labels": row.labels, "guestAccelerators": gpus}
    inputs: dict[str, Any] = {
        "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 8},
        "nodeConfig": config,
        "networkConfig": {"acceleratorNetworkProfile": "auto"} if row.labels == MANAGED else {},
    }
    record = Record(world.path, inputs)
    resize(record, {ZONE: size})
    world.store.put(record)


def show(world: World, shown: dict[str, str], nics: int) -> None:
    """The pool's node shows these resources, publishes so many NICs, and is full."""
    (node,) = world.nodes()
    world.fleet.advertised = shown
    world.fleet.slices = [{"spec": {"driver": "dra.net", "nodeName": node, "devices": [NIC] * nics}}] if nics else []
    holder, claim = claiming("holder", nics, node=node, device_class="dranet")
    world.fleet.pods, world.fleet.claims = [*full(node, shown), *([holder] if nics else [])], [claim]


@pytest.mark.parametrize("case", TABLE)
def test_the_lab_decides_as_the_real_autoscalers_source(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IDLE_VARIABLE, "3600")
    row = TABLE[case]
    world = World(tmp_path, {})
    start = 1 if row.shows is not None else 0
    if row.before is not None:
        put(world, row, 1)
        show(world, row.before, row.nics)
        world.scaler.step()
        world.fleet.pods, world.fleet.slices, world.fleet.advertised = [], [], {}
    put(world, row, start)
    if row.shows is not None:
        show(world, row.shows, row.nics)
    if isinstance(row.asks, dict):
        container = {"resources": {"requests": {name: str(count) for name, count in row.asks.items()}}}
        pending = pod(name="pending", containers=[container])
    else:
        pending, claim = claiming("pending", row.asks[1], device_class=row.asks[0])
        world.fleet.claims.append(claim)
    world.fleet.pods.append(pending)
    world.scaler.step()
    assert ("grows" if sum(world.sizes()) > start else "stays") == row.decision, row.source


def gpu_node(age: timedelta, now: datetime, **resources: str) -> dict[str, Any]:
    gpus = [{"type": "nvidia-b200", "count": 8}]
    record = Record(PATH, {"nodeConfig": {"machineType": "a4-highgpu-8g", "guestAccelerators": gpus}})
    resize(record, {ZONE: 1})
    node = manifest(record, ZONE, 0, "v1")
    node["metadata"]["creationTimestamp"] = (now - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    node["status"]["allocatable"] |= resources
    return node


def cpu_node() -> dict[str, Any]:
    record = Record(PATH, {"nodeConfig": {"machineType": "n2-standard-8"}})
    resize(record, {ZONE: 1})
    return manifest(record, ZONE, 0, "v1")


@pytest.mark.parametrize(
    ("unready", "ready", "minutes", "stops"),
    [(4, 4, 16, True), (4, 5, 16, False), (3, 0, 16, False), (4, 4, 14, False)],
)
def test_many_nodes_without_a_gpu_stop_the_autoscaler(unready: int, ready: int, minutes: int, *, stops: bool) -> None:
    """pkg/clusterstate/clusterstate.go: IsClusterHealthy and MaxNodeStartupTime, with the flags' defaults of 3 and 45 %."""
    now = datetime(2026, 11, 22, tzinfo=UTC)
    shares = {"nvidia.com/gpu.shared": "32"}
    nodes = [*[gpu_node(timedelta(minutes=minutes), now, **shares)] * unready, *[cpu_node()] * ready]
    assert stopped(nodes, now) is stops


def test_a_stopped_autoscaler_does_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, {"totalMinNodeCount": 0, "totalMaxNodeCount": 3})
    broken = Record(
        world.path.replace("flex", "broken"),
        {
            "nodeConfig": {
                "machineType": "a4-highgpu-8g",
                "guestAccelerators": [{"type": "nvidia-b200", "count": 8}],
            }
        },
    )
    resize(broken, {ZONE: 4})
    world.store.put(broken)
    world.fleet.created = "2026-01-01T00:00:00Z"
    container = {"resources": {"requests": {"cpu": "6"}}}
    choosy = pod(containers=[container], nodeSelector={"cloud.google.com/gke-nodepool": "flex"})
    world.fleet.pods = [choosy]
    world.scaler.step()
    assert sum(world.sizes()) == 0
    world.fleet.advertised = {"nvidia.com/gpu": "8"}
    world.scaler.step()
    assert sum(world.sizes()) == 1


def test_a_pool_that_is_gone_is_forgotten() -> None:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    node = gpu_node(timedelta(), now, **{"nvidia.com/gpu": "32"})
    gpus = [{"type": "nvidia-b200", "count": 8}]
    record = Record(PATH, {"nodeConfig": {"machineType": "a4-highgpu-8g", "guestAccelerators": gpus}})
    resize(record, {ZONE: 1})
    templates = Templates()
    assert not without_gpu(node)
    templates.look([record], [node], {})
    assert templates.of(record, ZONE).allocatable["nvidia.com/gpu"] == "32"
    templates.look([], [], {})
    assert templates.of(record, ZONE) == from_machine(record, ZONE)
