from __future__ import annotations

from typing import Any

import pytest

from berth.lab.devices.admission import failed, refusal
from berth.lab.devices.advertised import GPU

BEFORE, SINCE, AFTER = "2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z", "2026-11-20T12:00:00Z"


def pod(count: str | None = "2", phase: str = "Pending", bound: str = AFTER, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {GPU: count} if count else {}}}
    return {
        "metadata": {"name": "pod", "creationTimestamp": BEFORE},
        "spec": {"containers": [container]} | spec,
        "status": {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}],
        },
    }


def test_the_kubelets_words_name_resource_and_number() -> None:
    assert refusal(pod(), {GPU}, SINCE) == (
        'Allocate failed due to rpc error: code = Unknown desc = invalid allocation request for "nvidia.com/gpu": '
        "invalid request: maximum request size for shared resources is 1; found 2, which is unexpected"
    )


@pytest.mark.parametrize(
    ("candidate", "refused"),
    [
        (pod(), True),
        (pod(phase="Running"), True),
        (pod(bound=SINCE), True),
        (pod(count=None, initContainers=[{"resources": {"limits": {GPU: "3"}}}]), True),
        (pod("1"), False),
        (pod(None), False),
        (pod(bound=BEFORE), False),
        (pod(phase="Failed"), False),
        (pod(phase="Succeeded"), False),
        (pod() | {"status": {}}, False),
        (pod() | {"status": {}, "metadata": {"creationTimestamp": AFTER}}, True),
        (pod() | {"metadata": {"creationTimestamp": BEFORE, "deletionTimestamp": AFTER}}, False),
    ],
)
def test_pods_that_came_after_and_ask_for_more_are_turned_away(candidate: dict[str, Any], *, refused: bool) -> None:
    assert bool(refusal(candidate, {GPU}, SINCE)) is refused


def test_a_pod_that_was_turned_away_never_ran() -> None:
    status = failed("why", AFTER)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "UnexpectedAdmissionError")
    assert status["containerStatuses"] is None
    assert {each["status"] for each in status["conditions"]} == {"False"}
