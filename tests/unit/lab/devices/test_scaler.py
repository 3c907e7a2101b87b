from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from berth.lab.devices.scaler import IDLE_VARIABLE, Scaler, autoscaled, short
from berth.lab.plugins.gcp.fleet import Fleet
from berth.lab.plugins.gcp.nodes import expected, manifest, resize, sizes_of
from berth.lab.plugins.gcp.store import Record, Store

from .test_autoscaler import pod

if TYPE_CHECKING:
    from pathlib import Path

ZONES = ("us-central1-b", "us-central1-c")


class Remembered(Fleet):
    """The pool's nodes as its record says, and the pods that a test puts there."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.pods: list[dict[str, Any]] = []
        self.advertised: dict[str, str] = {}
        self.created = ""
        self.claims: list[dict[str, Any]] = []
        self.slices: list[dict[str, Any]] = []
        self.events: list[tuple[str, str, str]] = []

    def event(self, pod: dict[str, Any], kind: str, reason: str, message: str) -> None:
        del kind
        self.events.append((pod["metadata"]["name"], reason, message))

    def listed(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        if kind.startswith("resource"):
            return self.claims if kind == "resourceclaims" else self.slices
        if kind == "nodes":
            pools = self.store.list("nodePools")
            nodes = [manifest(pool, zone, number, "v1") for pool in pools for zone, number in expected(pool).values()]
            for node in nodes:
                node["status"]["allocatable"] |= self.advertised
                if self.created:
                    node["metadata"]["creationTimestamp"] = self.created
            return nodes
        bound = selector.startswith("spec.nodeName")
        return [each for each in self.pods if bool(each["spec"]["nodeName"]) is bound]

    def reconcile(self, pool: Record) -> None:
        pass

    def remove(self, names: list[str]) -> None:
        pass


class World:
    def __init__(self, folder: Path, scaling: dict[str, int], **inputs: Any) -> None:
        self.store = Store(folder)
        self.fleet = Remembered(self.store)
        self.scaler = Scaler(self.store, self.fleet)
        self.conditions = folder / "conditions.yaml"
        self.path = f"projects/p/locations/{ZONES[0]}/clusters/c/nodePools/flex"
        config = {"machineType": "n2-standard-8"}
        self.put(Record(self.path, {"autoscaling": scaling, "nodeConfig": config} | inputs), 0)

    def put(self, record: Record, size: int) -> None:
        resize(record, dict.fromkeys(ZONES, size))
        self.store.put(record)

    def sizes(self) -> list[int]:
        record = self.store.get(self.path)
        assert record is not None
        return list(sizes_of(record).values())

    def nodes(self) -> list[str]:
        record = self.store.get(self.path)
        assert record is not None
        return list(expected(record))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # An idle node goes at the first look.
    monkeypatch.setenv(IDLE_VARIABLE, "0.0")


def cpus(count: int, node: str = "") -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": str(count)}}}
    return pod(node=node, phase="Running" if node else "Pending", containers=[container])


def test_a_pool_grows_into_its_emptier_zones_up_to_its_limit(tmp_path: Path) -> None:
    world = World(tmp_path, {"totalMinNodeCount": 0, "totalMaxNodeCount": 3})
    world.fleet.pods = [cpus(6)]
    world.scaler.step()
    assert world.sizes() == [1, 0]
    world.fleet.pods = [cpus(6, world.nodes()[0]), *[cpus(6)] * 5]
    world.scaler.step()
    assert sum(world.sizes()) == 3
    world.scaler.step()
    assert sum(world.sizes()) == 3


def test_limits_for_each_zone_count_for_each_zone(tmp_path: Path) -> None:
    world = World(tmp_path, {"minNodeCount": 0, "maxNodeCount": 2})
    world.fleet.pods = [cpus(6)] * 9
    world.scaler.step()
    assert world.sizes() == [2, 2]


def test_idle_nodes_go_down_to_the_least(tmp_path: Path) -> None:
    world = World(tmp_path, {"totalMinNodeCount": 1, "totalMaxNodeCount": 8})
    record = world.store.get(world.path)
    assert record is not None
    world.put(record, 2)
    busy = world.nodes()[3]
    world.fleet.pods = [cpus(1, busy)]
    world.scaler.step()
    assert world.nodes() == [busy]
    world.fleet.pods = []
    world.scaler.step()
    assert sum(world.sizes()) == 1


def test_a_node_that_is_not_idle_for_long_enough_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IDLE_VARIABLE, "3600")
    world = World(tmp_path, {"totalMinNodeCount": 0, "totalMaxNodeCount": 8})
    record = world.store.get(world.path)
    assert record is not None
    world.put(record, 1)
    world.scaler.step()
    world.scaler.step()
    assert world.sizes() == [1, 1]


def test_queued_and_fixed_pools_are_left_alone(tmp_path: Path) -> None:
    assert autoscaled(World(tmp_path / "fixed", {}).store) == []
    limits = {"totalMinNodeCount": 0, "totalMaxNodeCount": 8}
    assert autoscaled(World(tmp_path / "queued", limits, queuedProvisioning={"enabled": True}).store) == []


def gpu_pool(world: World) -> None:
    labels = {"gke-no-default-nvidia-gpu-device-plugin": "true"}
    gpus = [{"type": "nvidia-b200", "count": 8, "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}]
    config = {"machineType": "a4-highgpu-8g", "labels": labels, "guestAccelerators": gpus}
    scaling = {"totalMinNodeCount": 0, "totalMaxNodeCount": 8}
    world.put(Record(world.path, {"autoscaling": scaling, "nodeConfig": config}), 0)


def test_a_pool_without_nodes_promises_whole_gpus_whoever_serves_them(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    gpu_pool(world)
    world.fleet.pods = [pod(gpus=8)]
    world.scaler.step()
    assert sum(world.sizes()) == 1


def test_a_node_whose_gpus_are_still_to_come_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing goes meanwhile, or a node too many would not be seen.
    monkeypatch.setenv(IDLE_VARIABLE, "3600")
    world = World(tmp_path, {})
    gpu_pool(world)
    world.fleet.pods = [pod(gpus=8)]
    for _ in range(3):
        world.scaler.step()
    # The node is there and shows no GPU yet; another one would not help.
    assert sum(world.sizes()) == 1


def test_shares_are_promised_as_on_the_pools_other_nodes(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    gpu_pool(world)
    record = world.store.get(world.path)
    assert record is not None
    world.put(record, 1)
    world.fleet.advertised = {"nvidia.com/gpu": "32"}
    # Both nodes are full; five pods of eight shares go on two nodes of four times eight.
    full = [pod(gpus=32, node=name, phase="Running") for name in world.nodes()]
    world.fleet.pods = [*full, *[pod(gpus=8)] * 5]
    world.scaler.step()
    assert sum(world.sizes()) == 4


OUT = (
    "Node scale up in zones us-central1-b associated with this pod failed: GCE out of resources. Pod is at risk of not "
    "being scheduled."
)
STOCK = "stock: [{{zone: {zone}, machineType: n2-standard-8, capacity: flex-start, available: {count}}}]"


def flex(folder: Path, **scaling: int) -> World:
    world = World(folder, scaling, nodeConfig={"machineType": "n2-standard-8", "flexStart": True})
    record = world.store.get(world.path)
    assert record is not None
    record.state["instances"] = {ZONES[0]: []}
    world.store.put(record)
    return world


def test_a_pool_that_machines_cannot_be_had_for_stays_as_it_is_says_so_once_and_grows_when_there_are_some(
    tmp_path: Path,
) -> None:
    world = flex(tmp_path, totalMinNodeCount=0, totalMaxNodeCount=3)
    world.conditions.write_text(STOCK.format(zone=ZONES[0], count=0))
    world.fleet.pods = [cpus(6)]
    world.scaler.step()
    world.scaler.step()
    assert world.sizes() == [0]
    assert world.fleet.events == [("pod", "FailedScaleUp", OUT)]
    world.conditions.write_text(STOCK.format(zone=ZONES[0], count=1))
    world.scaler.step()
    assert world.sizes() == [1]
    assert world.fleet.events[1:] == [("pod", "TriggeredScaleUp", world.fleet.events[1][2])]
    assert world.fleet.events[1][2].endswith("-grp 0->1 (max: 3)}]")


def test_a_pool_grows_as_far_as_there_are_machines(tmp_path: Path) -> None:
    world = flex(tmp_path, totalMinNodeCount=0, totalMaxNodeCount=8)
    world.conditions.write_text(STOCK.format(zone=ZONES[0], count=2))
    world.fleet.pods = [cpus(6)] * 5
    world.scaler.step()
    assert world.sizes() == [2]


def test_a_quota_is_said_as_such_and_counts_all_pools(tmp_path: Path) -> None:
    world = World(tmp_path, {"totalMinNodeCount": 0, "totalMaxNodeCount": 8})
    other = Record(world.path.replace("flex", "other"), {"nodeConfig": {"machineType": "n2-standard-16"}})
    world.put(other, 1)
    world.conditions.write_text("projects: {p: {quotas: {us-central1: {N2_CPUS: 36}}}}")
    choosy = cpus(6)
    choosy["spec"]["nodeSelector"] = {"cloud.google.com/gke-nodepool": "flex"}
    world.fleet.pods = [choosy]
    world.scaler.step()
    assert world.sizes() == [0, 0]
    assert [message.split(" failed: ")[1].split(".")[0] for _, _, message in world.fleet.events] == [
        "GCE quota exceeded"
    ]
    world.conditions.write_text("projects: {p: {quotas: {us-central1: {N2_CPUS: 40}}}}")
    world.scaler.step()
    assert sum(world.sizes()) == 1


def test_a_pod_that_no_pool_would_help_is_told_why(tmp_path: Path) -> None:
    world = World(tmp_path, {"totalMinNodeCount": 0, "totalMaxNodeCount": 1})
    world.fleet.pods = [cpus(64)]
    world.scaler.step()
    assert world.fleet.events == [("pod", "NotTriggerScaleUp", "pod didn't trigger scale-up: 2 Insufficient cpu")]


def test_machines_that_a_fixed_pool_waits_for_come_when_there_are_some(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    config = {"machineType": "n2-standard-8"}
    record = Record(world.path, {"nodeCount": 2, "nodeConfig": config}, {"missing": {ZONES[0]: 2, ZONES[1]: 0}})
    world.put(record, 0)
    stock = "stock: [{{zone: us-central1-b, machineType: n2-standard-8, capacity: on-demand, available: {}}}]"
    world.conditions.write_text(stock.format(0))
    world.scaler.step()
    assert (world.sizes(), [each.id for each in short(world.store)]) == ([0, 0], [world.path])
    world.conditions.write_text(stock.format(1))
    world.scaler.step()
    assert world.sizes() == [1, 0]
    world.conditions.write_text("stock: []")
    world.scaler.step()
    assert (world.sizes(), short(world.store)) == ([2, 0], [])


def claiming(name: str, count: int, node: str = "", device_class: str = "mrdma.google.com") -> tuple[Any, Any]:
    """A pod, and its claim of some devices."""
    status = {"resourceClaimStatuses": [{"name": "nics", "resourceClaimName": f"{name}-claim"}]}
    made = pod(0, node=node, phase="Running" if node else "Pending", name=name, resourceClaims=[{"name": "nics"}])
    made["status"] |= status
    request = {"name": "nic", "exactly": {"deviceClassName": device_class, "count": count}}
    metadata = {"name": f"{name}-claim", "namespace": "default"}
    return made, {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}


def fabric_pool(world: World, **labels: str) -> None:
    config = {
        "machineType": "a4-highgpu-8g",
        "labels": labels,
        "guestAccelerators": [{"type": "nvidia-b200", "count": 8}],
    }
    scaling = {"totalMinNodeCount": 0, "totalMaxNodeCount": 8}
    inputs = {"autoscaling": scaling, "nodeConfig": config, "networkConfig": {"acceleratorNetworkProfile": "auto"}}
    world.put(Record(world.path, inputs), 0)


MANAGED = {"cloud.google.com/gke-networking-dra-driver": "true"}


NIC = {"name": "nic", "attributes": {"dra.net/rdma": {"bool": True}}}


def publish(world: World, *nodes: str) -> None:
    """DraNet publishes 8 NICs of each of these nodes, which show their GPUs."""
    world.fleet.advertised = {"nvidia.com/gpu": "8"}
    world.fleet.slices = [{"spec": {"driver": "dra.net", "nodeName": name, "devices": [NIC] * 8}} for name in nodes]


def test_a_pool_grows_for_claims_beside_a_node_and_waits_for_what_its_new_node_publishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IDLE_VARIABLE, "3600")
    world = World(tmp_path, {})
    fabric_pool(world, **MANAGED)
    record = world.store.get(world.path)
    assert record is not None
    resize(record, {ZONES[0]: 1})
    world.store.put(record)
    (first,) = world.nodes()
    publish(world, first)
    pods = [claiming("holder", 8, node=first), claiming("two", 4), claiming("three", 4)]
    world.fleet.pods, world.fleet.claims = ([each[part] for each in pods] for part in range(2))
    for _ in range(3):
        world.scaler.step()
    # The second node has published nothing yet; another one would not help.
    assert sum(world.sizes()) == 2
    more, its_claim = claiming("four", 8)
    world.fleet.pods.append(more)
    world.fleet.claims.append(its_claim)
    world.scaler.step()
    assert sum(world.sizes()) == 3


def test_a_pool_whose_driver_gke_does_not_know_grows_only_beside_a_node_that_publishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IDLE_VARIABLE, "3600")
    world = World(tmp_path, {})
    fabric_pool(world)
    made, claim = claiming("one", 8, device_class="dranet")
    world.fleet.pods, world.fleet.claims = [made], [claim]
    world.scaler.step()
    assert sum(world.sizes()) == 0
    assert world.fleet.events[-1][1:] == (
        "NotTriggerScaleUp",
        "pod didn't trigger scale-up: 2 cannot allocate all claims",
    )
    record = world.store.get(world.path)
    assert record is not None
    resize(record, {ZONES[0]: 1, ZONES[1]: 0})
    world.store.put(record)
    (node,) = world.nodes()
    publish(world, node)
    holder, held = claiming("holder", 8, node=node, device_class="dranet")
    world.fleet.pods, world.fleet.claims = [made, holder], [claim, held]
    world.scaler.step()
    assert sum(world.sizes()) == 2


def test_claimed_gpus_are_not_promised_to_pods_that_count_them(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    dra = {"cloud.google.com/gke-nvidia-gpu-dra-driver": "true", "gke-no-default-nvidia-gpu-device-plugin": "true"}
    fabric_pool(world, **MANAGED, **dra)
    world.fleet.pods = [pod(gpus=1)]
    world.scaler.step()
    assert sum(world.sizes()) == 0
    made, claim = claiming("claims", 2, device_class="gpu.nvidia.com")
    world.fleet.pods, world.fleet.claims = [made], [claim]
    world.scaler.step()
    assert sum(world.sizes()) == 1
