"""RayClusters beside a plan, with the pods that run: what a preview counts as lost."""

from typing import Any

import pytest

from berth.cli.pulumi.preview import cluster_view as module
from berth.cli.pulumi.preview import plan
from berth.components.cluster.api import NAMESPACES, PODS, RAY_CLUSTERS, ClusterApi, RefusedError
from berth.components.core.owner import namespace_of, owner_labels
from berth.components.hardware.names import GPU_RESOURCE, POOL_LABEL
from berth.components.plan.occupants import occupant_of
from berth.stacks.load.stack import EngineerBerth
from tests.unit.loaded import engineer_of, environment_of, environment_values
from tests.unit.recorded_cluster import RecordedCluster

POOL = {"machineType": "g2-standard-8", "nodes": 3}


class Cluster(RecordedCluster):
    """Cluster whose RayClusters ask for one worker each; three run in alice's."""

    def metadata(self, path: str, **query: str) -> list[dict[str, Any]]:
        return self.list(path, **query)[0]


class WithoutRight(Cluster):
    def metadata(self, path: str, **query: str) -> list[dict[str, Any]]:
        del path, query
        raise RefusedError(403, {"message": "pods is forbidden"})


def ray_cluster(name: str) -> dict[str, Any]:
    resources = {"limits": {GPU_RESOURCE: 1}}
    template = {
        "spec": {
            "nodeSelector": {POOL_LABEL: "dev"},
            "containers": [{"name": "ray", "resources": resources}],
        }
    }
    head = {
        "template": {"spec": {"nodeSelector": {POOL_LABEL: "cpu"}, "containers": [{"name": "ray"}]}}
    }
    group = {"groupName": "gpu", "replicas": 1, "minReplicas": 1, "template": template}
    return {
        "metadata": {"namespace": namespace_of(name), "name": name},
        "spec": {"headGroupSpec": head, "workerGroupSpecs": [group]},
    }


def pod(owner: str, name: str, node_type: str = "worker", **metadata: Any) -> dict[str, Any]:
    labels = {"ray.io/cluster": owner, "ray.io/group": "gpu", "ray.io/node-type": node_type}
    return {
        "metadata": {"namespace": namespace_of(owner), "name": name, "labels": labels} | metadata
    }


OBJECTS: dict[str, list[dict[str, Any]]] = {
    NAMESPACES: [
        {
            "metadata": {
                "name": namespace_of(name),
                "labels": owner_labels("dev", "dev", "engineer", name),
            }
        }
        for name in ("alice", "bob")
    ],
    RAY_CLUSTERS: [ray_cluster("alice"), ray_cluster("bob")],
    PODS: [
        pod("alice", "head", "head"),
        *(pod("alice", f"worker-{number}") for number in range(3)),
        pod("alice", "worker-gone", deletionTimestamp="2026-11-29T00:00:00Z"),
    ],
}


@pytest.fixture
def _there(monkeypatch: pytest.MonkeyPatch) -> None:
    asks(monkeypatch, Cluster(OBJECTS))


def asks(monkeypatch: pytest.MonkeyPatch, cluster: ClusterApi) -> None:
    monkeypatch.setattr(module, "_cluster_of", lambda _outputs: cluster)
    monkeypatch.setattr("berth.cli.pulumi.stack.stack_outputs", lambda _stack: {})


def pods_of(view: module.ClusterView) -> dict[str, tuple[int, int]]:
    """Pods and GPUs by the name of the RayCluster."""
    occupants = [occupant_of(cluster) for cluster in view.live or ()]
    return {
        occupant.name: (
            sum(usage.pods for usage in occupant.on.values()),
            sum(usage.gpus for usage in occupant.on.values()),
        )
        for occupant in occupants
    }


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (Cluster, {"alice": (4, 3), "bob": (1, 0)}),
        # What should run is the next best.
        (WithoutRight, {"alice": (2, 1), "bob": (2, 1)}),
    ],
)
def test_workers_are_those_that_run(
    monkeypatch: pytest.MonkeyPatch,
    cluster: type[Cluster],
    expected: dict[str, tuple[int, int]],
) -> None:
    asks(monkeypatch, cluster(OBJECTS))
    assert pods_of(module.cluster_view("dev")) == expected


@pytest.mark.usefixtures("_there")
def test_the_preview_of_an_engineers_own_stack_counts_the_engineers_pods_alone() -> None:
    environment = environment_of("dev", environment_values(dev=POOL))
    berth = engineer_of("alice", environment="dev").on(environment.contract())
    assert isinstance(berth, EngineerBerth)
    view = plan._view_beside(berth, "alice")  # noqa: SLF001 - a preview has the engine beside it
    assert pods_of(view) == {"alice": (4, 3)}
    assert (view.outputs, view.api) == ({}, None), "those are the environment's"
