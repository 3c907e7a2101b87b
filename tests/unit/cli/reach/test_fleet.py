"""`berth status` counts what the API server has, whatever else is there."""

from __future__ import annotations

import io
from typing import Any, cast

from rich.console import Console

from berth.cli.reach.environment import Environment
from berth.cli.reach.fleet import notes_on, observed, table
from berth.components.cluster.api import NODES, ClusterApi, ClusterError
from berth.components.cluster.resource_api import GROUP as CLAIMS_API
from berth.components.core.owner import KEEPS_HOME
from berth.components.gke import PoolSettings
from berth.components.ray.fleet import Fleet
from berth.components.ray.nodes import Holder, Node, nodes_of
from berth.components.ray.settings import BerthShape
from berth.stacks.settings.contract import EnvironmentContract


class Recorded:
    """A cluster with nodes, and perhaps devices that they publish; nothing else."""

    def __init__(self, *nodes: dict[str, Any], **devices: list[dict[str, Any]]) -> None:
        self._listed = {NODES: list(nodes)} | {f"{CLAIMS_API}/v1/{kind}": items for kind, items in devices.items()}
        self.refuses = False

    def list(self, what: str, **_selectors: str) -> tuple[list[dict[str, Any]], str]:
        return self._listed.get(what, []), "1"

    def get(self, path: str) -> dict[str, Any]:
        if self.refuses:
            raise ClusterError("you lack a right in the cluster")
        kinds = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
        answers: dict[str, Any] = {
            CLAIMS_API: {"versions": [{"version": "v1"}]},
            f"{CLAIMS_API}/v1": {"resources": [{"name": kind} for kind in kinds]},
        }
        return dict(answers[path])


def node(name: str, labels: dict[str, str] | None) -> dict[str, Any]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "8"}}
    return {"metadata": {"name": name} | ({"labels": labels} if labels else {}), "spec": {}, "status": ready}


def test_a_node_without_labels_is_in_no_pool() -> None:
    api = Recorded(node("one", {"cloud.google.com/gke-nodepool": "cpu"}), node("stray", None))
    pools = {"cpu": PoolSettings.model_validate({"machineType": "n2-standard-8", "nodes": 1})}
    contract = EnvironmentContract(name="env", pools=pools, defaults=BerthShape(), demands=[], namespaces={})
    (pool,) = observed(cast("ClusterApi", api), "env", Environment("env", contract, "")).pools
    assert (pool.nodes, pool.nodes_ready) == (1, 1)


def test_shares_are_not_called_gpus() -> None:
    """A pod's requests count shares where the pool's GPUs are shared."""
    pools = {
        "dev": PoolSettings.model_validate({"machineType": "g2-standard-24", "nodes": 1, "sharing": "quarter"}),
        "whole": PoolSettings.model_validate({"machineType": "g2-standard-24", "nodes": 1}),
    }
    sharing = {"quarter": {"kind": "time-slicing", "replicas": 4}}
    contract = EnvironmentContract.model_validate(
        {"name": "env", "pools": pools, "sharing": sharing, "defaults": {}, "demands": [], "namespaces": {}}
    )
    nodes = [node(name, {"cloud.google.com/gke-nodepool": name}) for name in pools]
    for found, count in zip(nodes, ("8", "2"), strict=True):
        found["status"]["allocatable"]["nvidia.com/gpu"] = count
    fleet = observed(cast("ClusterApi", Recorded(*nodes)), "env", Environment("env", contract, ""))
    rows = [" ".join(line.split()) for line in shown(fleet).splitlines()]
    assert "dev g2-standard-24 1 0/8 shares time-slicing × 4, memory not isolated" in rows
    assert "whole g2-standard-24 1 0/2 –" in rows
    assert [fleet.counted(count, pool) for count, pool in ((1, "dev"), (2, "dev"), (1, "whole"))] == [
        "1 share",
        "2 shares",
        "1",
    ]


def test_what_is_declared_and_missing_is_listed() -> None:
    contract = EnvironmentContract(name="env", pools={}, defaults=BerthShape(), demands=[], namespaces={})
    outputs = {"berths": "bob, carol", "clusters": "", "jobs": "nightly"}
    up = Environment("env", contract, "", outputs=outputs)
    fleet = observed(cast("ClusterApi", Recorded()), "env", up)
    assert not fleet.ready
    assert fleet.as_json()["missing"] == [
        {"kind": "engineer", "name": "bob"},
        {"kind": "engineer", "name": "carol"},
        {"kind": "job", "name": "nightly"},
    ]
    assert "engineer carol is missing" in " ".join(shown(fleet).split())
    assert observed(cast("ClusterApi", Recorded()), "env", Environment("env", contract, "")).ready


def a_pod(name: str, on: str, gpus: int, **labels: str) -> dict[str, Any]:
    containers = [{"name": "ray", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]
    metadata = {
        "name": name,
        "namespace": f"of-{name}",
        "labels": {f"berth/{key}": value for key, value in labels.items()},
    }
    return {"metadata": metadata, "spec": {"nodeName": on, "containers": containers}, "status": {"phase": "Running"}}


def test_nodes_say_who_holds_their_gpus() -> None:
    nodes = [
        node(name, {"cloud.google.com/gke-nodepool": pool}) for name, pool in (("b", "gpu"), ("a", "gpu"), ("c", "x"))
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


def fabric(api: Recorded) -> Fleet:
    pools = {
        "cpu": PoolSettings.model_validate({"machineType": "n2-standard-8", "nodes": 1}),
        "pairs": PoolSettings.model_validate(
            {"machineType": "a4-highgpu-8g", "nodes": 1, "rdma": "networks", "gpuAllocation": "dra"}
        ),
    }
    contract = EnvironmentContract(name="env", pools=pools, defaults=BerthShape(), demands=[], namespaces={})
    return observed(cast("ClusterApi", api), "env", Environment("env", contract, ""))


def a_slice(driver: str, count: int, **attributes: Any) -> dict[str, Any]:
    devices = [{"name": f"device-{number}", "attributes": attributes} for number in range(count)]
    return {"spec": {"driver": driver, "nodeName": "a", "pool": {"name": "a", "generation": 1}, "devices": devices}}


def shown(fleet: Fleet) -> str:
    text = io.StringIO()
    Console(width=400, file=text).print(table(fleet))
    return text.getvalue()


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
    api = Recorded(node("a", {"cloud.google.com/gke-nodepool": "pairs"}), resourceslices=slices, resourceclaims=[claim])
    fleet = fabric(api)
    (pool,) = [item for item in fleet.as_json()["pools"] if item["name"] == "pairs"]
    assert [pool[key] for key in ("gpus", "gpusInUse", "nics", "nicsInUse", "nicsOfMachines")] == [8, 2, 8, 2, 8]
    assert "NICs in use" in shown(fleet)
    assert "publish" not in shown(fleet)


def test_nics_that_no_node_publishes_are_missed_but_not_where_nobody_may_look() -> None:
    api = Recorded(node("a", {"cloud.google.com/gke-nodepool": "pairs"}))
    assert "pairs has 8 NICs, and its nodes publish 0 of them for claims" in shown(fabric(api))
    api.refuses = True
    assert "NICs" not in shown(fabric(api))


def test_namespaces_that_the_state_does_not_know_are_named_with_what_removes_them() -> None:
    def namespace(name: str, stack: str = "env", **annotations: str) -> dict[str, Any]:
        labels = {"berth/environment": "env", "berth/stack": stack, "berth/engineer": name}
        return {"metadata": {"name": f"berth-{name}", "labels": labels, "annotations": annotations}}

    class Namespaces(Recorded):
        def list(self, what: str, **selectors: str) -> tuple[list[dict[str, Any]], str]:
            there = [
                namespace("bob"),
                namespace("eve"),
                namespace("alice", "alice"),
                namespace("ann", **{KEEPS_HOME: ""}),
            ]
            return (there, "1") if what.endswith("/namespaces") else super().list(what, **selectors)

    pools = {"cpu": PoolSettings.model_validate({"machineType": "n2-standard-8", "nodes": 1})}
    contract = EnvironmentContract(name="env", pools=pools, defaults=BerthShape(), demands=[], namespaces={})
    up = Environment("env", contract, "", outputs={"berths": "bob, carol", "clusters": ""})
    fleet = observed(cast("ClusterApi", Namespaces()), "env", up)
    assert fleet.not_in_state == ["berth-eve"]
    (note,) = [note for note in notes_on(fleet) if "state" in note]
    assert note.endswith("kubectl delete namespace berth-eve")
    by_own_login = Environment("env", contract, "")
    assert observed(cast("ClusterApi", Namespaces()), "env", by_own_login).not_in_state == []
