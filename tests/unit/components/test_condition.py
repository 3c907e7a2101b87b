"""What is told of a RayCluster, from objects as the API server gives them."""

from __future__ import annotations

from typing import Any

import pytest

from components.ray.condition import condition_of, gpus_of, reasons_not_ready


def cluster(
    *, state: str = "ready", ready: int = 2, desired: int = 2, generation: int = 1, head: str = "True"
) -> dict[str, Any]:
    return {
        "metadata": {"name": "alice", "namespace": "berth-alice", "generation": generation},
        "spec": {
            "workerGroupSpecs": [
                {
                    "replicas": desired,
                    "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}},
                }
            ]
        },
        "status": {
            "state": state,
            "observedGeneration": 1,
            "readyWorkerReplicas": ready,
            "desiredWorkerReplicas": desired,
            "conditions": [{"type": "HeadPodReady", "status": head}],
        },
    }


def pod(phase: str = "Pending", kind: str = "worker", **status: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"ray.io/node-type": kind}}, "status": {"phase": phase} | status}


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
        (cluster(state="suspended", ready=0, head="False"), True, "head not ready, 0/0 workers ready"),
    ],
)
def test_condition(given: dict[str, Any], ready: bool, text: str) -> None:  # noqa: FBT001
    condition = condition_of(given)
    assert (condition.ready, str(condition)) == (ready, text)


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


def test_an_operator_that_does_not_look_is_suspected() -> None:
    assert reasons_not_ready(cluster(generation=2), [], []) == [
        "the KubeRay operator has not looked at it: is it running?"
    ]


def test_a_ready_cluster_has_no_reasons() -> None:
    assert reasons_not_ready(cluster(), [UNSCHEDULABLE], []) == []


def test_gpus_are_those_of_all_workers() -> None:
    assert gpus_of(cluster(desired=3)) == 6
