"""berth doctor names what stays half-made on a cluster."""

from datetime import UTC, datetime
from typing import Any

import pytest

from berth.cli.verbs.doctor.kubernetes.stuck import check_stuck
from berth.components.cluster.api import NAMESPACES, PODS, RAY_CLUSTERS, RAY_JOBS
from tests.unit.recorded_cluster import RecordedCluster

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BERTH = {"berth/environment": "dev", "berth/engineer": "x", "berth/stack": "dev"}
SPACE: dict[str, Any] = {"metadata": {"name": "berth-x", "labels": BERTH}}
ENDING = SPACE | {
    "metadata": SPACE["metadata"] | {"deletionTimestamp": "2026-11-21T11:00:00Z"},
    "status": {
        "conditions": [
            {"status": "True", "message": "Some resources are remaining: persistentvolumeclaims."}
        ]
    },
}


ASLEEP = SPACE | {"metadata": SPACE["metadata"] | {"annotations": {"berth/idle": "2h"}}}


def held(*finalizers: str, when: str = "2026-11-21T11:00:00Z") -> dict[str, Any]:
    names = {"name": "j", "namespace": "berth-x"}
    return {"metadata": {**names, "finalizers": list(finalizers), "deletionTimestamp": when}}


def queued() -> dict[str, Any]:
    writer = {
        "manager": "kueue",
        "time": "2026-11-21T11:00:00Z",
        "fieldsV1": {"f:spec": {"f:suspend": {}}},
    }
    return {
        "metadata": {"name": "x", "namespace": "berth-x", "managedFields": [writer]},
        "spec": {"suspend": False},
    }


def operator(reason: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "kuberay-operator"}
    status = {"restartCount": 7, "lastState": {"terminated": {"reason": reason}}}
    metadata = {"name": "kuberay-1", "namespace": "ray", "labels": labels}
    return {"metadata": metadata, "status": {"containerStatuses": [status]}}


@pytest.mark.parametrize(
    ("objects", "text", "remedy"),
    [
        (
            {RAY_JOBS: [held("ray.io/rayjob-finalizer")]},
            "rayjob j in namespace berth-x",
            "kubectl patch rayjob j ",
        ),
        (
            {RAY_CLUSTERS: [held("example.com/hold")]},
            "finalizer example.com/hold holds",
            "kubectl patch raycluster j ",
        ),
        (
            {NAMESPACES: [ENDING]},
            "berth-x is being deleted, and waits: Some resources",
            "get namespace berth-x",
        ),
        (
            {RAY_CLUSTERS: [queued()], NAMESPACES: [ASLEEP]},
            "Kueue starts and suspends x: it starts",
            "workloads.kueue",
        ),
        (
            {PODS: [operator("OOMKilled")]},
            "(kuberay-1) was killed for want of memory",
            "memory: 2Gi",
        ),
    ],
)
def test_what_waits_comes_with_the_command(objects: dict[str, Any], text: str, remedy: str) -> None:
    (found,) = check_stuck(RecordedCluster({NAMESPACES: [SPACE]} | objects), NOW)
    assert text in found.text
    assert remedy in found.remedy


@pytest.mark.parametrize(
    "objects",
    [
        {RAY_JOBS: [held("ray.io/rayjob-finalizer", when="2026-11-21T11:59:30Z")]},
        {RAY_JOBS: [held()]},
        {RAY_JOBS: [held("ray.io/rayjob-finalizer")], NAMESPACES: []},
        {PODS: [operator("Error")]},
        {RAY_CLUSTERS: [queued()]},
    ],
    ids=[
        "just begun",
        "held by nothing",
        "outside of berths",
        "an operator that ended otherwise",
        "without lifecycle",
    ],
)
def test_what_goes_its_way_is_left_alone(objects: dict[str, Any]) -> None:
    assert check_stuck(RecordedCluster({NAMESPACES: [SPACE]} | objects), NOW) == []
