"""Condition of a RayCluster, from objects as the API server gives them."""

from __future__ import annotations

from typing import Any

import pytest

from berth.components.cluster.pods import SYNCED, why_not_ready
from berth.components.ray.condition import condition_of, gpus_of, pods_missing, reasons_not_ready


def cluster(
    *,
    state: str = "ready",
    ready: int = 2,
    desired: int = 2,
    generation: int = 1,
    head: str = "True",
    suspend: bool | None = None,
) -> dict[str, Any]:
    return {
        "metadata": {"name": "alice", "namespace": "berth-alice", "generation": generation},
        "spec": {
            "suspend": suspend,
            "workerGroupSpecs": [
                {
                    "replicas": desired,
                    "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}},
                }
            ],
        },
        "status": {
            "state": state,
            "observedGeneration": 1,
            "readyWorkerReplicas": ready,
            "desiredWorkerReplicas": desired,
            "conditions": [{"type": "HeadPodReady", "status": head}],
        },
    }


def pod(phase: str = "Pending", kind: str = "worker", uid: str = "", **status: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "labels": {"ray.io/node-type": kind}}, "status": {"phase": phase} | status}


UNSCHEDULABLE = pod(
    conditions=[
        {
            "type": "PodScheduled",
            "status": "False",
            "message": "0/5 nodes are available: 1 Insufficient nvidia.com/gpu.",
        }
    ]
)


@pytest.mark.parametrize(
    ("given", "ready", "text"),
    [
        (cluster(), True, "head ready, 2/2 workers ready"),
        (cluster(ready=1), False, "head ready, 1/2 workers ready"),
        (cluster(head="False"), False, "head not ready, 2/2 workers ready"),
        (cluster(generation=2), False, "the operator has not seen it yet"),
        (cluster(state="failed"), False, "head ready, 2/2 workers ready"),
        (
            cluster(state="suspended", ready=0, head="False", suspend=True),
            True,
            "head not ready, 0/0 workers ready",
        ),
        (cluster(state="suspended", ready=0, head="False", suspend=False), False, "head not ready, 0/2 workers ready"),
    ],
)
def test_condition(given: dict[str, Any], ready: bool, text: str) -> None:  # noqa: FBT001
    condition = condition_of(given)
    assert (condition.ready, str(condition)) == (ready, text)


UNSTARTED = pod("Pending")
READY: dict[str, Any] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def pods(**counts: int) -> list[dict[str, Any]]:
    return [pod(kind=kind, **READY) for kind, count in counts.items() for _ in range(count)]


def going(of: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item | {"metadata": item["metadata"] | {"deletionTimestamp": "2026-11-21T10:00:00Z"}} for item in of]


@pytest.mark.parametrize(
    ("given", "found", "missing"),
    [
        (cluster(), pods(head=1, worker=2), ""),
        # Pods of the last edit that still count in the status, in the order in which they are seen
        # after an edit.
        (
            cluster(),
            going(pods(head=1, worker=2)),
            "its pods are being recreated: 3 pods are still terminating, 0/1 heads and 0/2 workers are ready",
        ),
        (cluster(), [], "its pods are being recreated: 0/1 heads and 0/2 workers are ready"),
        (
            cluster(),
            [*pods(head=1, worker=1), UNSTARTED],
            "its pods are being recreated: 1/1 heads and 1/2 workers are ready",
        ),
        # Ray's autoscaler takes a worker away; nobody waits for that.
        (cluster(), [*pods(head=1, worker=2), *going(pods(worker=1))], ""),
        (cluster(state="suspended", ready=0, head="False", suspend=True), [], ""),
    ],
)
def test_a_status_of_the_last_edits_pods_is_not_believed(
    given: dict[str, Any], found: list[dict[str, Any]], missing: str
) -> None:
    assert condition_of(given).ready
    assert pods_missing(given, found) == missing
    pending = ["worker pod is not ready yet (phase Pending)"] if UNSTARTED in found else []
    assert reasons_not_ready(given, found, []) == (pending or ([missing] if missing else []))


def test_a_cluster_that_wakes_is_not_suspended_any_more() -> None:
    assert condition_of(cluster(state="suspended", suspend=True)).state == "suspended"
    assert condition_of(cluster(state="suspended", suspend=False)).state == "waking"


@pytest.mark.parametrize(
    ("pods", "events", "expected"),
    [
        (
            [UNSCHEDULABLE, UNSCHEDULABLE],
            [],
            ["2 pods: worker pod cannot be scheduled: 0/5 nodes are available: 1 Insufficient nvidia.com/gpu."],
        ),
        (
            [
                pod(
                    containerStatuses=[
                        {
                            "name": "ray-worker",
                            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}},
                        }
                    ]
                )
            ],
            [],
            ["worker pod, container ray-worker: ImagePullBackOff: not found"],
        ),
        ([pod("Failed", message="evicted")], [], ["worker pod failed: evicted"]),
        ([pod("Running", "head")], [], ["head pod is not ready yet (phase Running)"]),
        ([], [{"message": "quota exceeded"}, {"message": "quota exceeded"}], ["quota exceeded"]),
        ([], [], ["head ready, 1/2 workers ready"]),
    ],
)
def test_reasons(pods: list[dict[str, Any]], events: list[dict[str, Any]], expected: list[str]) -> None:
    assert reasons_not_ready(cluster(ready=1), pods, events) == expected


def event(reason: str, message: str, when: str, uid: str = "a") -> dict[str, Any]:
    return {"involvedObject": {"uid": uid}, "reason": reason, "message": message, "lastTimestamp": when}


OUT = "Node scale up in zones us-central1-b associated with this pod failed: GCE out of resources."


@pytest.mark.parametrize(
    ("scaling", "words"),
    [
        ([event("FailedScaleUp", OUT, "2026-11-21T10:00:00Z")], f"; the autoscaler: {OUT}"),
        (
            [
                event("TriggeredScaleUp", "pod triggered scale-up: [{… 0->1 (max: 3)}]", "2026-11-21T10:05:00Z"),
                event("FailedScaleUp", OUT, "2026-11-21T10:00:00Z"),
            ],
            "; the autoscaler is adding a node for it",
        ),
        (
            [
                event(
                    "NotTriggerScaleUp",
                    "pod didn't trigger scale-up: 1 max node group size reached",
                    "2026-11-21T10:05:00Z",
                )
            ],
            "; the autoscaler: pod didn't trigger scale-up: 1 max node group size reached",
        ),
        ([event("FailedScaleUp", OUT, "2026-11-21T10:00:00Z", uid="another")], ""),
        ([], ""),
    ],
)
def test_why_no_node_comes_is_the_autoscalers_to_say(scaling: list[dict[str, Any]], words: str) -> None:
    waiting = pod(uid="a", conditions=UNSCHEDULABLE["status"]["conditions"])
    reasons = reasons_not_ready(cluster(ready=1), [waiting], [], scaling)
    assert reasons == [
        f"worker pod cannot be scheduled: 0/5 nodes are available: 1 Insufficient nvidia.com/gpu.{words}"
    ]


def test_an_operator_that_does_not_look_is_suspected() -> None:
    assert reasons_not_ready(cluster(generation=2), [], []) == [
        "the KubeRay operator has not looked at it: is it running?"
    ]


def test_a_ready_cluster_has_no_reasons() -> None:
    assert reasons_not_ready(cluster(), [*pods(head=1, worker=2), UNSCHEDULABLE], []) == []


def test_gpus_are_those_of_all_workers() -> None:
    assert gpus_of(cluster(desired=3)) == 6


def test_claimed_gpus_count_too() -> None:
    claiming = cluster(desired=3)
    (group,) = claiming["spec"]["workerGroupSpecs"]
    group["template"] = {
        "metadata": {"annotations": {"berth/claimed-gpus": "4"}},
        "spec": {"containers": [{"resources": {"limits": {"cpu": "4"}, "claims": [{"name": "gpus"}]}}]},
    }
    assert gpus_of(claiming) == 12


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ('secret "hub" not found', "; GKE has not written it: berth secret list x"),
        ('secret "hf" not found', "; set it with: berth secret set x HF_TOKEN"),
        ("couldn't find key token in Secret berth-x/hf", "; set it with: berth secret set x HF_TOKEN"),
        ('secret "other" not found', ""),
        ('configmap "hf" not found', ""),
    ],
)
def test_a_missing_secret_comes_with_the_command_that_sets_it(message: str, command: str) -> None:
    waiting = pod(
        containerStatuses=[
            {"name": "ray-head", "state": {"waiting": {"reason": "CreateContainerConfigError", "message": message}}}
        ]
    )
    places = {"HF_TOKEN": {"name": "hf", "key": "token"}, "HUB": {"name": "hub", "key": SYNCED}}
    references = [{"name": name, "valueFrom": {"secretKeyRef": at}} for name, at in places.items()]
    variables = [{"name": "LOG", "value": "1"}, *references]
    waiting["spec"] = {"containers": [{"name": "ray-head", "env": variables}]}
    waiting["metadata"].setdefault("labels", {})["berth/engineer"] = "x"
    reason = why_not_ready(waiting, "head")
    assert reason == f"head pod, container ray-head: CreateContainerConfigError: {message}{command}"
