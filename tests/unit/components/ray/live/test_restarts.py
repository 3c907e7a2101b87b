"""Restarts of pods, from KubeRay's events, the kubelet's and the scheduler's, and pods' states.

KubeRay's messages are those of v1.6.2 (raycluster_controller.go), with Go's form of a container's
end; the kubelet's are those of a node that is low on disk.
"""

from datetime import UTC, datetime
from typing import Any

from berth.components.ray.live.restarts import Restart, restarts_of

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
_KILLED = (
    "Deleted worker Pod berth-alice/alice-gpu-worker-b; Pod status: Failed;"
    " Pod restart policy: Never;"
    " Ray container terminated status: &ContainerStateTerminated{ExitCode:137,Signal:0,"
    "Reason:OOMKilled,Message:,StartedAt:2026-11-29 10:00:00 +0000 UTC,"
    "FinishedAt:2026-11-29 11:00:00 +0000 UTC,ContainerID:containerd://1,}"
)
_GONE = (
    "Deleted head Pod berth-alice/alice-head-a; Pod status: Failed; Pod restart policy: Always;"
    " Ray container terminated status: <nil>"
)


def event(kind: str, name: str, reason: str, message: str, at: str) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "berth-alice"},
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def deleted(message: str, at: str = "2026-11-29T11:58:00Z") -> dict[str, Any]:
    role = "Head" if "head" in message else "Worker"
    return event("RayCluster", "alice", f"Deleted{role}Pod", message, at)


def test_an_evicted_head_has_the_kubelets_reason() -> None:
    evicted = event(
        "Pod",
        "alice-head-a",
        "Evicted",
        "The node was low on resource: ephemeral-storage.",
        "2026-11-29T11:57:50Z",
    )
    (restart,) = restarts_of([], [deleted(_GONE)], [evicted], NOW)
    reason = "Evicted: The node was low on resource: ephemeral-storage."
    assert restart == Restart("2026-11-29T11:58:00Z", "head", "alice-head-a", reason)


def test_a_replaced_worker_has_its_containers_end() -> None:
    (restart,) = restarts_of([], [deleted(_KILLED)], [], NOW)
    assert (restart.role, restart.reason) == ("worker", "OOMKilled, exit code 137")


def test_a_pod_that_failed_without_a_word() -> None:
    (restart,) = restarts_of([], [deleted(_GONE)], [], NOW)
    assert restart.reason == "phase Failed, and no reason given"


def test_workers_that_the_autoscaler_removes_are_no_restarts() -> None:
    removed = deleted("Deleted pod berth-alice/alice-gpu-worker-c")
    assert restarts_of([], [removed], [], NOW) == []


def test_preempted_workers_and_containers_that_restarted_in_place() -> None:
    preempted = event(
        "Pod",
        "alice-gpu-worker-d",
        "Preempted",
        "Preempted by pod 12 on node n",
        "2026-11-29T11:50:00Z",
    )
    head = {
        "metadata": {"name": "alice-head-e", "labels": {"ray.io/node-type": "head"}},
        "status": {
            "containerStatuses": [
                {
                    "name": "ray-head",
                    "restartCount": 2,
                    "lastState": {
                        "terminated": {
                            "exitCode": 137,
                            "reason": "OOMKilled",
                            "finishedAt": "2026-11-29T11:55:00Z",
                        }
                    },
                }
            ]
        },
    }
    found = restarts_of([head], [], [preempted], NOW)
    assert [(one.pod, one.reason) for one in found] == [
        ("alice-head-e", "OOMKilled, exit code 137"),
        ("alice-gpu-worker-d", "Preempted: Preempted by pod 12 on node n"),
    ]


def test_yesterdays_restarts_are_no_news() -> None:
    assert restarts_of([], [deleted(_GONE, "2026-11-28T11:00:00Z")], [], NOW) == []
