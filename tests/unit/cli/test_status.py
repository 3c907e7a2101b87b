"""`berth status` counts what the API server has, whatever else is there."""

from __future__ import annotations

from typing import Any, cast

from cli.status import observe
from components.cluster_api import NODES, ClusterApi
from stacks.settings.pool import PoolSettings
from stacks.settings.ray import RayShape
from stacks.settings.resolve import EnvironmentContract


class OnlyNodes:
    """A cluster with nodes and nothing else."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        self._nodes = list(nodes)

    def list(self, what: str, **_selectors: str) -> tuple[list[dict[str, Any]], str]:
        return (self._nodes if what == NODES else []), "1"


def node(name: str, labels: dict[str, str] | None) -> dict[str, Any]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "8"}}
    return {"metadata": {"name": name} | ({"labels": labels} if labels else {}), "spec": {}, "status": ready}


def test_a_node_without_labels_is_in_no_pool() -> None:
    api = OnlyNodes(node("one", {"cloud.google.com/gke-nodepool": "cpu"}), node("stray", None))
    pools = {"cpu": PoolSettings.model_validate({"machineType": "n2-standard-8", "nodes": 1})}
    contract = EnvironmentContract(name="env", pools=pools, defaults=RayShape(), demands=[], namespaces={})
    (pool,) = observe(cast("ClusterApi", api), "env", contract).pools
    assert (pool.nodes, pool.nodes_ready) == (1, 1)
