"""Machine types that berth does not know, on an existing cluster whose nodes say what they have."""

from pathlib import Path
from typing import Any

import pytest

from berth.components.cluster.api import NODES, ClusterError
from berth.components.cluster.kubeconfig import read_kubeconfig
from berth.stacks.load import reported
from berth.stacks.load.stack import SettingsError
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.components.cluster.test_kubeconfig import write
from tests.unit.loaded import environment_of
from tests.unit.recorded_cluster import RecordedCluster

VALUES: dict[str, Any] = {
    "cluster": {"existing": {"kubeconfig": "~/.kube/config"}},
    "pools": {
        "cpu": {"machineType": "n2-standard-16", "nodes": 1},
        "dev": {"machineType": "x9-test-8g", "nodes": 2},
    },
    "clusters": {"big": {"workers": 2, "worker": {"pool": "dev"}}},
}
OF_GKE = {
    "cloud.google.com/gke-accelerator": "nvidia-x9",
    "cloud.google.com/gke-accelerator-count": "8",
}
OF_NVIDIA = {"nvidia.com/gpu.memory": "81920"}
SIZE = {"cpu": "15890m", "memory": "60000000Ki"}


def node(
    name: str, labels: dict[str, str], allocatable: dict[str, str], pool: str = "dev"
) -> dict[str, Any]:
    labels = {"cloud.google.com/gke-nodepool": pool, **labels}
    status = {"allocatable": allocatable, "capacity": allocatable}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function that loads the environment on a cluster with some nodes, or an error."""
    kubeconfig = write(tmp_path)

    def load(answer: list[dict[str, Any]] | ClusterError) -> EnvironmentSettings:
        def connect(_: str) -> RecordedCluster:
            if isinstance(answer, ClusterError):
                raise answer
            return RecordedCluster({NODES: answer})

        monkeypatch.setattr(reported, "read_kubeconfig", lambda _: read_kubeconfig(kubeconfig))
        monkeypatch.setattr(reported, "ClusterApi", connect)
        return environment_of("test", VALUES).settings

    return load


@pytest.mark.parametrize(
    ("nodes", "gpus", "allocatable"),
    [
        (
            [node("a", OF_GKE, SIZE)],
            {"type": "nvidia-x9", "count": 8},
            {"cpu": "15890m", "memory": "58593Mi"},
        ),
        (
            [
                node("a", OF_GKE | OF_NVIDIA, SIZE),
                node("b", OF_GKE, {"cpu": "16", "memory": "64Gi"}),
            ],
            {"type": "nvidia-x9", "count": 8, "memory": "81920Mi"},
            {"cpu": "15890m", "memory": "58593Mi"},
        ),
        # Elsewhere than on GKE: what the device plugin advertises.
        (
            [node("a", {}, SIZE | {"nvidia.com/gpu": "2"})],
            {"type": "nvidia-gpu", "count": 2},
            {"cpu": "15890m", "memory": "58593Mi"},
        ),
    ],
)
def test_nodes_say_what_a_machine_type_has(
    asked: Any, nodes: Any, gpus: Any, allocatable: Any
) -> None:
    pool = asked(nodes).pools["dev"]
    assert pool.gpus.model_dump(exclude_none=True) == gpus
    assert pool.allocatable.model_dump() == allocatable
    assert pool.machine.gpus == gpus["count"]


def test_a_worker_on_a_whole_node_has_most_of_what_the_nodes_offer(asked: Any) -> None:
    asked([node("a", OF_GKE, SIZE)])
    (berth,) = environment_of("test", VALUES).berths
    (group,) = berth.settings.groups
    assert (group.gpus, group.cpu, group.memory) == (8, "14", "45Gi")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            [],
            (
                "no node has the label cloud.google.com/gke-nodepool of this pool now, so that none"
                " could be asked"
            ),
        ),
        (
            [node("a", OF_GKE, SIZE, pool="other")],
            "no node has the label cloud.google.com/gke-nodepool of this pool",
        ),
        (ClusterError("no answer"), "its nodes could not be asked: no answer"),
    ],
)
def test_where_no_node_answers_the_settings_have_to_say_it(
    asked: Any, answer: Any, reason: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        asked(answer)
    first, second = refused.value.lines
    assert first.startswith(f"environment.pools.dev.machineType: {reason}")
    assert "gpus: {count: 0} for none" in second


def test_what_the_settings_say_counts_before_what_nodes_report(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"cpu": "8", "memory": "8Gi"}
    monkeypatch.setitem(VALUES["pools"], "dev", VALUES["pools"]["dev"] | {"allocatable": own})
    pool = asked([node("a", OF_GKE, SIZE)]).pools["dev"]
    assert (pool.allocatable.model_dump(), pool.gpus.count) == (own, 8)


def test_a_cluster_is_not_asked_for_what_the_settings_say(asked: Any) -> None:
    with pytest.raises(SettingsError):
        asked(ClusterError("no answer"))
    pools = VALUES["pools"] | {
        "dev": VALUES["pools"]["dev"] | {"gpus": {"type": "nvidia-x9", "count": 8}}
    }
    assert environment_of("test", VALUES | {"pools": pools}).settings.pools["dev"].machine.gpus == 8
