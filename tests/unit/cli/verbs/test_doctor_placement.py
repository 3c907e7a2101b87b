"""Findings of `berth doctor` on what pods select and request of nodes of an existing cluster."""

from typing import Any

import pytest

from berth.cli.verbs.doctor.findings import DoctorFinding
from berth.cli.verbs.doctor.kubernetes.placement import check_placement
from tests.unit.loaded import environment_of
from tests.unit.recorded_cluster import RecordedCluster


def found(patch: dict[str, Any], *nodes: dict[str, Any]) -> list[DoctorFinding]:
    worker = {"pool": "cpu", "gpus": 0, "cpu": 1, "memory": "2Gi", "podTemplate": {"spec": patch}}
    loaded = environment_of(
        "test",
        {
            "cluster": {"existing": {"kubeconfig": "kubeconfig"}},
            "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 2}},
            "engineers": {"alice": {"worker": worker}, "bob": {"worker": worker}},
        },
    )
    return list(check_placement(nodes, loaded.berths, RecordedCluster({})))


def node(labels: dict[str, str] | None = None, **allocatable: str) -> dict[str, Any]:
    amounts = {name.replace("_", "-"): amount for name, amount in allocatable.items()}
    return {
        "metadata": {
            "name": "a",
            "labels": {"cloud.google.com/gke-nodepool": "cpu", **(labels or {})},
        },
        "status": {"allocatable": amounts},
    }


def resources(**requests: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): amount for name, amount in requests.items()}
    return {"containers": [{"name": "ray-worker", "resources": {"requests": named}}]}


DISK = node(ephemeral_storage="102152806Ki")


@pytest.mark.parametrize(
    ("patch", "nodes", "text"),
    [
        (
            {"nodeSelector": {"gpu-type": "t4"}},
            [node({"gpu-type": "l4"})],
            "pool cpu: no node has the labels gpu-type=t4, which pods select: they would wait",
        ),
        (
            resources(ephemeral_storage="200Gi"),
            [DISK, node(ephemeral_storage="50Gi")],
            "pool cpu: a pod requests 200.0Gi of ephemeral-storage, and its nodes have 97.4Gi",
        ),
        (
            resources(hugepages_2Mi="1Gi"),
            [node()],
            "pool cpu: a pod requests 1.0Gi of hugepages-2Mi, and its nodes have 0.0Gi",
        ),
        (
            {"runtimeClassName": "gvisor"},
            [node()],
            "there is no RuntimeClass gvisor: the API server refuses pods that name it",
        ),
    ],
)
def test_what_pods_of_two_berths_lack_is_said_once(
    patch: dict[str, Any], nodes: list[dict[str, Any]], text: str
) -> None:
    (finding,) = found(patch, *nodes)
    assert finding.state == "missing"
    assert finding.text.startswith(text)
    assert finding.text.endswith(" (alice and bob)")
    assert finding.remedy


@pytest.mark.parametrize(
    ("patch", "nodes"),
    [
        ({"nodeSelector": {"gpu-type": "t4"}}, [node(), node({"gpu-type": "t4"})]),
        ({"nodeSelector": {"gpu-type": "t4"}}, []),
        (resources(ephemeral_storage="50Gi"), [DISK]),
        ({}, [node()]),
    ],
)
def test_pods_that_nodes_have_all_for_are_fine(
    patch: dict[str, Any], nodes: list[dict[str, Any]]
) -> None:
    assert found(patch, *nodes) == []
