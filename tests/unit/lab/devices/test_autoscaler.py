"""The lab's autoscaler: growth, limits, idle nodes, and decisions as in the real one's source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from berth.lab.api import CLAIMS, SLICES, Api
from berth.lab.devices.autoscaler import IDLE_VARIABLE, Autoscaler
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.nodes import expected, manifest, resize, sizes_of
from berth.lab.plugins.gcp.store import Store, StoredRecord
from tests.unit.cases import table

GPU = "nvidia.com/gpu"
ZONES = ("us-central1-b", "us-central1-c")
PATH = f"projects/p/locations/{ZONES[0]}/clusters/c/nodePools/flex"
CPUS = {"machineType": "n2-standard-8"}
GPUS = {"machineType": "a4-highgpu-8g", "guestAccelerators": [{"type": "nvidia-b200", "count": 8}]}
UP_TO_8 = {"totalMinNodeCount": 0, "totalMaxNodeCount": 8}
MANAGED = "cloud.google.com/gke-networking-dra-driver"
RDMA_NIC = {"dra.net/rdma": {"bool": True}}


class StillFleet(SimulatedFleet):
    """Nodes are those of the records at once."""

    def __init__(self) -> None:
        super().__init__(Path("nowhere"))

    def reconcile(self, pool: StoredRecord) -> None:
        pass

    def remove(self, names: list[str]) -> None:
        pass


class World(Api):
    """A pool of two zones, its nodes as its record says, and the pods that a test puts there."""

    def __init__(self, folder: Path, scaling: dict[str, int], **inputs: Any) -> None:
        self.store = Store(folder)
        self.scaler = Autoscaler(self.store, StillFleet(), self)
        self.pods: list[dict[str, Any]] = []
        self.advertised: dict[str, str] = {}
        self.claims: list[dict[str, Any]] = []
        self.slices: list[dict[str, Any]] = []
        self.events: list[tuple[str, str, str]] = []
        self.put(0, 0, autoscaling=scaling, **({"nodeConfig": CPUS} | inputs))

    def put(self, *sizes: int, name: str = "flex", **inputs: Any) -> None:
        record = StoredRecord(PATH.replace("flex", name), inputs)
        resize(record, dict(zip(ZONES, sizes, strict=False)))
        self.store.put(record)

    def conditions(self, text: str) -> None:
        (self.store.folder / "conditions.yaml").write_text(text)

    def resize(self, *sizes: int) -> None:
        record = self.record
        resize(record, dict(zip(ZONES, sizes, strict=False)))
        self.store.put(record)

    @property
    def record(self) -> StoredRecord:
        record = self.store.get(PATH)
        assert record is not None
        return record

    def sizes(self) -> list[int]:
        return list(sizes_of(self.record).values())

    def nodes(self) -> list[str]:
        return list(expected(self.record))

    def event(self, pod: dict[str, Any], source: str, kind: str, reason: str, message: str) -> None:
        del source, kind
        self.events.append((pod["metadata"]["name"], reason, message))

    def list(self, path: str, **query: str) -> list[dict[str, Any]]:
        if path in (CLAIMS, SLICES):
            return self.claims if path == CLAIMS else self.slices
        if path.endswith("pods"):
            bound = query["fieldSelector"].startswith("spec.nodeName")
            return [pod for pod in self.pods if bool(pod["spec"]["nodeName"]) is bound]
        pools = self.store.list("nodePools")
        nodes = [
            manifest(pool, zone, number, "v1")
            for pool in pools
            for zone, number in expected(pool).values()
        ]
        for node in nodes:
            node["status"]["allocatable"] |= self.advertised
        return nodes


def pod(name: str = "pod", asks: Mapping[str, Any] | None = None, node: str = "") -> dict[str, Any]:
    container = {
        "resources": {"requests": {key: str(count) for key, count in (asks or {}).items()}}
    }
    toleration = {"key": GPU, "operator": "Exists"}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"containers": [container], "tolerations": [toleration], "nodeName": node},
        "status": {"phase": "Running" if node else "Pending", "conditions": [condition]},
    }


def cpus(count: int, node: str = "", name: str = "pod") -> dict[str, Any]:
    return pod(name, {"cpu": count}, node)


def claiming(name: str, device_class: str, count: int, node: str = "") -> tuple[Any, Any]:
    """A pod, and its claim of some devices."""
    found = pod(name, node=node)
    found["spec"]["resourceClaims"] = [{"name": "nics"}]
    found["status"]["resourceClaimStatuses"] = [
        {"name": "nics", "resourceClaimName": f"{name}-claim"}
    ]
    request = {"name": "nic", "exactly": {"deviceClassName": device_class, "count": count}}
    metadata = {"name": f"{name}-claim", "namespace": "default"}
    return found, {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}


@pytest.fixture(autouse=True)
def _idle_nodes_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IDLE_VARIABLE, "0.0")


def test_a_pool_grows_into_its_emptier_zones_up_to_its_limit(tmp_path: Path) -> None:
    world = World(tmp_path, {"totalMinNodeCount": 0, "totalMaxNodeCount": 3})
    world.pods = [cpus(6)]
    world.scaler.step()
    assert world.sizes() == [1, 0]
    world.pods = [
        cpus(6, world.nodes()[0]),
        *(cpus(6, name=f"pod-{number}") for number in range(5)),
    ]
    world.scaler.step()
    world.scaler.step()
    assert sum(world.sizes()) == 3


def test_idle_nodes_go_down_to_the_least_and_daemons_keep_no_node(tmp_path: Path) -> None:
    world = World(tmp_path, {"totalMinNodeCount": 1, "totalMaxNodeCount": 8})
    world.resize(2, 2)
    busy = world.nodes()[3]
    other = world.nodes()[0]
    daemon = cpus(1, other)
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet"}]
    world.pods = [cpus(1, busy), daemon]
    world.scaler.step()
    assert world.nodes() == [busy]
    world.pods = []
    world.scaler.step()
    assert sum(world.sizes()) == 1


def test_limits_for_each_zone_count_for_each_zone(tmp_path: Path) -> None:
    world = World(tmp_path, {"minNodeCount": 0, "maxNodeCount": 2})
    world.pods = [cpus(6, name=f"pod-{number}") for number in range(9)]
    world.scaler.step()
    assert world.sizes() == [2, 2]


def test_a_node_that_is_not_idle_for_long_enough_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IDLE_VARIABLE, "3600")
    world = World(tmp_path, UP_TO_8)
    world.resize(1, 1)
    world.scaler.step()
    world.scaler.step()
    assert world.sizes() == [1, 1]


def test_a_pool_of_a_fixed_size_is_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    world.resize(1, 1)
    world.pods = [cpus(6, node, f"on-{node}") for node in world.nodes()] + [cpus(6)]
    world.scaler.step()
    assert (world.sizes(), world.events) == ([1, 1], [])
    world.pods = []
    world.put(1, name="scaled", autoscaling=UP_TO_8, nodeConfig=CPUS)
    world.scaler.step()
    assert (world.sizes(), len(world.nodes())) == ([1, 1], 2)


def stock(available: int) -> str:
    """Conditions with so many machines in a zone."""
    machines = f"zone: {ZONES[0]}, machineType: n2-standard-8, capacity: on-demand"
    return f"stock: [{{{machines}, available: {available}}}]"


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        (stock(0), "GCE out of resources"),
        ("projects: {p: {quotas: {us-central1: {N2_CPUS: 7}}}}", "GCE quota exceeded"),
    ],
)
def test_a_pod_for_which_there_is_no_machine_gets_the_reason(
    tmp_path: Path, conditions: str, reason: str
) -> None:
    world = World(tmp_path, UP_TO_8)
    world.put(0, autoscaling=UP_TO_8, nodeConfig=CPUS)
    world.conditions(conditions)
    world.pods = [cpus(6)]
    world.scaler.step()
    assert world.sizes() == [0]
    failed = f"Node scale up in zones us-central1-b associated with this pod failed: {reason}."
    assert world.events == [
        ("pod", "FailedScaleUp", f"{failed} Pod is at risk of not being scheduled.")
    ]
    world.conditions("{}")
    world.scaler.step()
    assert world.sizes() == [1]
    assert [event[:2] for event in world.events[1:]] == [("pod", "TriggeredScaleUp")]


def test_a_pool_that_waits_for_machines_gets_them_when_there_are_some(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    world.put(1)
    record = world.record
    record.inputs["nodeConfig"] = CPUS
    record.state["missing"] = {ZONES[0]: 2}
    world.store.put(record)
    sizes = []
    for available in (1, 2, 9):
        world.conditions(stock(available))
        world.scaler.step()
        sizes.append(world.sizes())
    assert sizes == [[1], [2], [3]]
    world.scaler.step()
    assert world.sizes() == [3], "no more than were asked for"


def test_a_node_whose_gpus_are_still_to_come_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IDLE_VARIABLE, "3600")
    world = World(tmp_path, UP_TO_8, nodeConfig=GPUS)
    ask(world, {GPU: 8})
    for _ in range(3):
        world.scaler.step()
    assert sum(world.sizes()) == 1, (
        "the node is there and shows no GPU yet; another one would not help"
    )


def test_a_node_that_has_published_nothing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IDLE_VARIABLE, "3600")
    world = World(tmp_path, UP_TO_8, nodeConfig=GPUS)
    world.resize(1, 0)
    show(world, {GPU: "8"}, 8)
    for name in ("two", "three"):
        ask(world, ["dranet", 4], name)
    for _ in range(3):
        world.scaler.step()
    assert sum(world.sizes()) == 2
    ask(world, ["dranet", 8], "four")
    world.scaler.step()
    assert sum(world.sizes()) == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "2 Insufficient cpu"),
        (
            {"nodeSelector": {"kind": "other"}},
            "2 node(s) didn't match Pod's node affinity/selector",
        ),
    ],
)
def test_a_pod_that_no_pool_would_help_gets_the_reason(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    world = World(tmp_path, UP_TO_8)
    world.pods = [cpus(64)]
    world.pods[0]["spec"] |= change
    world.scaler.step()
    assert world.events == [("pod", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {reason}")]


@dataclass(frozen=True)
class Row:
    """One decision of autoscaler.yaml.

    Attributes:
        source: file and function of the real autoscaler.
        decision: whether the pool grows for the pending pod.
        asks: resources of the pending pod, or the class and number of the devices that it claims.
        labels: labels of the pool.
        shows: nvidia.com resources of the pool's node; None where the pool has no node.
        nics: NICs in the ResourceSlices of the pool's node.
        before: resources that the pool's node showed before the pool went to zero nodes.
    """

    source: str
    decision: Literal["grows", "stays"]
    asks: dict[str, int] | list[Any]
    labels: dict[str, str] = field(default_factory=dict)
    shows: dict[str, str] | None = None
    nics: int = 0
    before: dict[str, str] | None = None


TABLE = {name: Row(**row) for name, row in table(__file__, "autoscaler.yaml")["rows"].items()}


def put(world: World, row: Row, size: int) -> None:
    profile = {"acceleratorNetworkProfile": "auto"} if MANAGED in row.labels else {}
    config = GPUS | {"labels": row.labels}
    world.put(size, autoscaling=UP_TO_8, nodeConfig=config, networkConfig=profile)


def show(world: World, shown: dict[str, str], nics: int) -> None:
    """The pool's node shows these resources, publishes so many NICs, and is full."""
    (node,) = world.nodes()
    world.advertised = shown
    devices = [{"name": f"nic-{number}", "attributes": RDMA_NIC} for number in range(nics)]
    world.slices = [
        {
            "spec": {
                "driver": "dra.net",
                "nodeName": node,
                "pool": {"name": node},
                "devices": devices,
            }
        }
    ]
    holder, claim = claiming("holder", "dranet", nics, node)
    world.pods = [pod("full", {"pods": 109, **shown}, node), *([holder] if nics else [])]
    world.claims = [claim]


def ask(world: World, asks: dict[str, int] | list[Any], name: str = "pending") -> None:
    """A pod waits for resources, or for devices of a class."""
    if isinstance(asks, dict):
        world.pods.append(pod(name, asks))
    else:
        pending, claim = claiming(name, *asks)
        world.claims.append(claim)
        world.pods.append(pending)


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
        world.pods = []
        world.slices = []
        world.advertised = {}
    put(world, row, start)
    if row.shows is not None:
        show(world, row.shows, row.nics)
    ask(world, row.asks)
    world.scaler.step()
    assert ("grows" if sum(world.sizes()) > start else "stays") == row.decision, row.source
