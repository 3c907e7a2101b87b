"""Fleet of the simulated cloud: nodes on an API server, and what others wrote on them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from berth.components.cluster.api import Object
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.nodes import manifest, resize
from berth.lab.plugins.gcp.store import StoredRecord

from .conftest import A4, ZONE


class WrittenApi:
    """API server with some nodes and pods, which remembers what is written."""

    def __init__(self, nodes: list[Object], pods: list[Object] | None = None) -> None:
        self.nodes = nodes
        self.pods = pods or []
        self.written: list[tuple[str, str, Any]] = []

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        if not path.endswith("/pods"):
            return self.nodes, "1"
        node = query["fieldSelector"].removeprefix("spec.nodeName=")
        return [pod for pod in self.pods if pod["spec"]["nodeName"] == node], "1"

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> Any:
        self.written.append((method, path, body))


class FleetOfApi(SimulatedFleet):
    def __init__(self, api: WrittenApi) -> None:
        self.api = api

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        yield self.api


def pool(**labels: str) -> StoredRecord:
    path = f"projects/berth-lab/locations/{ZONE}/clusters/fleet/nodePools/a4"
    config = A4 | {"labels": labels}
    record = StoredRecord(path, {"name": "a4", "location": ZONE, "nodeConfig": config})
    resize(record, {ZONE: 1})
    return record


def test_labels_of_others_stay_when_those_of_a_pool_change() -> None:
    node = manifest(pool(team="research", tier="old"), ZONE, 0, "v1.36.3")
    node["metadata"]["labels"]["somebody/else"] = "mine"
    api = WrittenApi([node])
    FleetOfApi(api).reconcile(pool(team="platform"))
    ((method, path, body),) = api.written
    assert (method, path) == ("PATCH", f"/api/v1/nodes/{node['metadata']['name']}")
    assert body["metadata"]["labels"] == {"team": "platform", "tier": None}


def test_a_node_as_its_pool_has_it_is_not_written() -> None:
    api = WrittenApi([manifest(pool(team="research"), ZONE, 0, "v1.36.3")])
    FleetOfApi(api).reconcile(pool(team="research"))
    assert api.written == []


def test_pods_go_with_their_node_and_no_others() -> None:
    pods = [
        {"metadata": {"name": name, "namespace": "x"}, "spec": {"nodeName": node}}
        for name, node in (("here", "gone"), ("elsewhere", "stays"))
    ]
    api = WrittenApi([], pods)
    FleetOfApi(api).remove(["gone"])
    deleted = [path for method, path, _ in api.written if method == "DELETE"]
    assert "/api/v1/namespaces/x/pods/here" in deleted
    assert "/api/v1/nodes/gone" in deleted
    assert not any("elsewhere" in path for path in deleted)
    assert api.written[0] == ("PATCH", "/api/v1/nodes/gone", {"spec": {"unschedulable": True}})
