"""`berth status` counts what the API server has, whatever else is there."""

import io
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from berth.cli.reach.environment import LiveEnvironment
from berth.cli.reach.fleet import fleet_from, fleet_on
from berth.cli.reach.fleet_remarks import notes_on
from berth.cli.reach.fleet_tables import fleet_tables
from berth.cli.verbs.status.live_view import fleet_and_queue
from berth.components.cluster.api import NAMESPACES, NODES, PODS, RAY_CLUSTERS, ClusterError
from berth.components.cluster.inventory import GROUP as CLAIMS_API
from berth.components.cluster.mirror import Mirror
from berth.components.core.owner import KEEPS_HOME
from berth.components.gke import PoolSettings
from berth.components.ray.live.fleet import Fleet
from berth.components.ray.live.nodes import Holder, Node, nodes_of
from berth.components.ray.settings import BerthShape
from berth.stacks.settings.contract import EnvironmentContract
from tests.unit.recorded_cluster import RecordedCluster
from tests.unit.serving import Handler, answer, kubeconfig, serving


class Recorded(RecordedCluster):
    """A cluster with nodes and what else is given, and perhaps devices that the nodes publish."""

    def __init__(
        self, *nodes: dict[str, Any], namespaces: Sequence[dict[str, Any]] = (), **devices: Any
    ) -> None:
        published = {f"{CLAIMS_API}/v1/{kind}": items for kind, items in devices.items()}
        super().__init__({NODES: list(nodes), NAMESPACES: list(namespaces), **published})
        self.refuses = False

    def get(self, path: str) -> dict[str, Any] | None:
        if self.refuses:
            raise ClusterError("you lack a right in the cluster")
        kinds = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
        answers: dict[str, Any] = {
            CLAIMS_API: {"versions": [{"version": "v1"}]},
            f"{CLAIMS_API}/v1": {"resources": [{"name": kind} for kind in kinds]},
        }
        return dict(answers[path])


def observed_with(
    api: Recorded, outputs: dict[str, str] | None = None, **pools: dict[str, Any]
) -> Fleet:
    """Fleet of environment `env` with these pools."""
    known = {name: PoolSettings.model_validate(pool) for name, pool in pools.items()}
    contract = EnvironmentContract(
        name="env", pools=known, defaults=BerthShape(), demands=[], namespaces={}
    )
    return fleet_from(api, "env", LiveEnvironment("env", contract, "", outputs=outputs or {}))


CPU = {"machineType": "n2-standard-8", "nodes": 1}


class Counted(Recorded):
    """A cluster that counts what it is asked to list, and whose watches have no events."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        super().__init__(*nodes)
        self.lists = Counter[str]()
        self.ended = threading.Event()

    def list(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        self.lists[path] += 1
        return super().list(path, **query)

    def events(
        self, path: str, version: str, seconds: int, **query: str
    ) -> Iterator[dict[str, Any]]:
        del path, version, seconds, query
        self.ended.wait()
        return iter(())


def test_a_live_view_lists_nothing_twice_however_often_it_looks() -> None:
    api = Counted(node("one", {"cloud.google.com/gke-nodepool": "cpu"}))
    contract = EnvironmentContract(
        name="env",
        pools={"cpu": PoolSettings.model_validate(CPU)},
        defaults=BerthShape(),
        demands=[],
        namespaces={},
    )
    up = LiveEnvironment("env", contract, "")
    mirror = Mirror(api)
    looks = [fleet_and_queue(mirror, "env", up) for _ in range(3)]
    mirror.stop()
    api.ended.set()
    assert [look == looks[0] for look in looks] == [True, True, True]
    assert {NODES, PODS, RAY_CLUSTERS} <= api.lists.keys()
    assert {path: count for path, count in api.lists.items() if count > 1} == {}


def node(name: str, labels: dict[str, str] | None) -> dict[str, Any]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "8"}}
    return {
        "metadata": {"name": name} | ({"labels": labels} if labels else {}),
        "spec": {},
        "status": ready,
    }


def test_a_node_without_labels_is_in_no_pool() -> None:
    api = Recorded(node("one", {"cloud.google.com/gke-nodepool": "cpu"}), node("stray", None))
    (pool,) = observed_with(api, cpu=CPU).pools
    assert (pool.nodes, pool.nodes_ready) == (1, 1)


def test_shares_are_not_called_gpus() -> None:
    """A pod's requests count shares where the pool's GPUs are shared."""
    pools = {
        "dev": PoolSettings.model_validate(
            {"machineType": "g2-standard-24", "nodes": 1, "sharing": "quarter"}
        ),
        "whole": PoolSettings.model_validate({"machineType": "g2-standard-24", "nodes": 1}),
    }
    sharing = {"quarter": {"kind": "time-slicing", "replicas": 4}}
    contract = EnvironmentContract.model_validate(
        {
            "name": "env",
            "pools": pools,
            "sharing": sharing,
            "defaults": {},
            "demands": [],
            "namespaces": {},
        }
    )
    nodes = [node(name, {"cloud.google.com/gke-nodepool": name}) for name in pools]
    for found, count in zip(nodes, ("8", "2"), strict=True):
        found["status"]["allocatable"]["nvidia.com/gpu"] = count
    fleet = fleet_from(Recorded(*nodes), "env", LiveEnvironment("env", contract, ""))
    rows = [" ".join(line.split()) for line in shown(fleet).splitlines()]
    assert "dev g2-standard-24 1 0/8 shares of 1/4 L4 time-slicing × 4, memory not isolated" in rows
    assert "whole g2-standard-24 1 0/2 × L4 –" in rows
    assert [
        fleet.counted(count, pool) for count, pool in ((1, "dev"), (2, "dev"), (1, "whole"))
    ] == [
        "1 share of 1/4 L4",
        "2 shares of 1/4 L4",
        "1 × L4",
    ]


def test_what_is_declared_and_missing_is_listed() -> None:
    fleet = observed_with(Recorded(), {"berths": "bob, carol", "clusters": "", "jobs": "nightly"})
    assert not fleet.ready
    assert fleet.as_json()["missing"] == [
        {"kind": "engineer", "name": "bob"},
        {"kind": "engineer", "name": "carol"},
        {"kind": "job", "name": "nightly"},
    ]
    assert "engineer carol is missing" in " ".join(shown(fleet).split())
    assert observed_with(Recorded()).ready


def a_pod(name: str, on: str, gpus: int, **labels: str) -> dict[str, Any]:
    containers = [{"name": "ray", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]
    metadata = {
        "name": name,
        "namespace": f"of-{name}",
        "labels": {f"berth/{key}": value for key, value in labels.items()},
    }
    return {
        "metadata": metadata,
        "spec": {"nodeName": on, "containers": containers},
        "status": {"phase": "Running"},
    }


def test_nodes_say_who_holds_their_gpus() -> None:
    nodes = [
        node(name, {"cloud.google.com/gke-nodepool": pool})
        for name, pool in (("b", "gpu"), ("a", "gpu"), ("c", "x"))
    ]
    for found in nodes:
        found["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    pods = [
        a_pod("one", "a", 2, engineer="alice"),
        a_pod("two", "a", 1, engineer="alice"),
        a_pod("three", "b", 4, cluster="train"),
        a_pod("stray", "b", 1),
        a_pod("none", "b", 0, engineer="alice"),
    ]
    assert nodes_of(["gpu"], nodes, pods, None) == [
        Node("a", "gpu", ready=True, gpus=8, holders=[Holder("alice", 3)]),
        Node("b", "gpu", ready=True, gpus=8, holders=[Holder("of-stray", 1), Holder("train", 4)]),
    ]


PAIRS = {"machineType": "a4-highgpu-8g", "nodes": 1, "rdma": "networks", "gpuAllocation": "dra"}


def a_slice(driver: str, count: int, **attributes: Any) -> dict[str, Any]:
    devices = [{"name": f"device-{number}", "attributes": attributes} for number in range(count)]
    spec = {
        "driver": driver,
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1},
        "devices": devices,
    }
    return {"metadata": {"name": driver}, "spec": spec}


def shown(fleet: Fleet) -> str:
    text = io.StringIO()
    Console(width=400, file=text).print(fleet_tables(fleet))
    return text.getvalue()


def test_maintenance_of_a_nodes_host_is_announced_with_the_command_that_begins_it_now() -> None:
    labels = {
        "cloud.google.com/gke-nodepool": "pairs",
        "cloud.google.com/scheduled-maintenance-time": "1767236400",
    }
    fleet = observed_with(Recorded(node("a", labels)), cpu=CPU, pairs=PAIRS)
    assert (
        "node a of pool pairs goes down for maintenance of its host at 2026-01-01 03:00 UTC"
        in shown(fleet)
    )
    assert "kubectl label node a cloud.google.com/perform-maintenance=true" in shown(fleet)
    assert fleet.as_json()["nodes"][0]["maintenanceAt"] == "2026-01-01 03:00 UTC"


def test_nics_and_claimed_gpus_are_counted_as_published_and_held() -> None:
    results = [
        {"driver": driver, "pool": "a", "device": f"device-{number}"}
        for driver in ("dra.net", "gpu.nvidia.com")
        for number in range(2)
    ]
    claim = {
        "metadata": {"name": "claim", "namespace": "berth-alice"},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    slices = [
        a_slice("dra.net", 8, **{"dra.net/rdma": {"bool": True}}),
        a_slice("gpu.nvidia.com", 8, type={"string": "gpu"}),
    ]
    api = Recorded(
        node("a", {"cloud.google.com/gke-nodepool": "pairs"}),
        resourceslices=slices,
        resourceclaims=[claim],
    )
    fleet = observed_with(api, cpu=CPU, pairs=PAIRS)
    (pool,) = [item for item in fleet.as_json()["pools"] if item["name"] == "pairs"]
    assert [pool[key] for key in ("gpus", "gpusInUse", "nics", "nicsInUse", "nicsOfMachines")] == [
        8,
        2,
        8,
        2,
        8,
    ]
    assert "NICs in use" in shown(fleet)
    assert "publish" not in shown(fleet)


def test_nics_that_no_node_publishes_are_missed_but_not_where_nobody_may_look() -> None:
    api = Recorded(node("a", {"cloud.google.com/gke-nodepool": "pairs"}))
    assert "pairs has 8 NICs, and its nodes publish 0 of them for claims" in shown(
        observed_with(api, cpu=CPU, pairs=PAIRS)
    )
    api.refuses = True
    assert "NICs" not in shown(observed_with(api, cpu=CPU, pairs=PAIRS))


def test_namespaces_that_the_state_does_not_know_are_named_with_what_removes_them() -> None:
    def namespace(name: str, stack: str = "env", **annotations: str) -> dict[str, Any]:
        labels = {"berth/environment": "env", "berth/stack": stack, "berth/engineer": name}
        return {"metadata": {"name": f"berth-{name}", "labels": labels, "annotations": annotations}}

    there = [
        namespace("bob"),
        namespace("eve"),
        namespace("alice", "alice"),
        namespace("ann", **{KEEPS_HOME: ""}),
    ]
    api = Recorded(namespaces=there)
    fleet = observed_with(api, {"berths": "bob, carol", "clusters": ""}, cpu=CPU)
    assert fleet.not_in_state == ["berth-eve"]
    (note,) = [note for note in notes_on(fleet) if "state" in note]
    assert note.endswith("kubectl delete namespace berth-eve")
    assert observed_with(api, cpu=CPU).not_in_state == [], "by an own login"


def late_berths(count: int) -> dict[str, list[dict[str, Any]]]:
    """Berths of environment `env` whose pods no node has room for."""
    objects: dict[str, list[dict[str, Any]]] = {NAMESPACES: [], RAY_CLUSTERS: [], PODS: []}
    group = {"groupName": "workers", "replicas": 1, "template": {"spec": {"containers": []}}}
    for name in (f"late-{number}" for number in range(count)):
        labels = {"berth/environment": "env", "berth/stack": "env", "berth/engineer": name}
        space = f"berth-{name}"
        objects[NAMESPACES].append({"metadata": {"name": space, "labels": labels}})
        metadata = {"name": name, "namespace": space, "labels": labels}
        objects[RAY_CLUSTERS].append(
            {"metadata": metadata, "spec": {"workerGroupSpecs": [group]}, "status": {}}
        )
        pod = a_pod(f"{name}-head", "", 1)
        pod["metadata"] |= {"namespace": space, "labels": {"ray.io/cluster": name}}
        why = {"reason": "Unschedulable", "message": "0/3 nodes are available"}
        pod["status"] = {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", **why}],
        }
        objects[PODS].append(pod)
    return objects


def test_many_berths_cost_as_many_requests_as_few() -> None:
    contract = EnvironmentContract(
        name="env",
        pools={"cpu": PoolSettings.model_validate(CPU)},
        defaults=BerthShape(),
        demands=[],
        namespaces={},
    )
    requests: list[list[str]] = []
    for count in (3, 60):
        objects = late_berths(count)
        paths: list[str] = []

        def handle(handler: Handler, objects: Any = objects, paths: list[str] = paths) -> None:
            paths.append(handler.path)
            answer(handler, {"items": objects.get(handler.path.partition("?")[0], [])})

        with serving(handle) as url:
            up = LiveEnvironment("env", contract, kubeconfig(url), outputs={"berths": "late-0"})
            fleet = fleet_on(up, "env")
        assert [berth.name for berth in fleet.berths] == [f"late-{n}" for n in range(count)]
        assert all("0/3 nodes" in " ".join(berth.reasons) for berth in fleet.berths)
        assert len(set(paths)) == len(paths), "no list twice"
        requests.append(sorted(paths))
    assert requests[0] == requests[1]
