"""Statuses of pods that are held or turned away."""

from __future__ import annotations

from typing import Any

import pytest

from berth.lab.devices.kubelet import CRASHES, CREATES, Hold, refusal, status_change

GPU = "nvidia.com/gpu"
SPEC = {
    "initContainers": [{"name": "first", "image": "i"}, {"name": "second", "image": "i"}],
    "containers": [{"name": "main", "image": "i"}, {"name": "beside", "image": "i"}],
}


def held(status: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": SPEC, "status": {"podIP": "10.0.0.1"} | (status or {})}


@pytest.mark.parametrize(
    ("hold", "phase", "states"),
    [
        (
            Hold("second", "", "waits"),
            "Pending",
            ["terminated Completed", "running", *["waiting PodInitializing"] * 2],
        ),
        (Hold("", CREATES, "no runtime"), "Pending", ["waiting ContainerCreating"] * 4),
        (
            Hold("main", CRASHES, "bad config"),
            "Running",
            [*["terminated Completed"] * 2, "waiting CrashLoopBackOff", "running"],
        ),
    ],
)
def test_containers_of_a_held_pod_show_how_far_it_came(hold: Hold, phase: str, states: list[str]) -> None:
    status = status_change(held(), hold, "now")["status"]
    found = []
    for container in [*status["initContainerStatuses"], *status["containerStatuses"]]:
        ((kind, state),) = container["state"].items()
        found.append(f"{kind} {state.get('reason', '')}".strip())
    assert (status["phase"], found) == (phase, states)


def test_a_hold_is_shown_once_and_given_back_once() -> None:
    hold = Hold("main", CRASHES, "bad config")
    shown = held(status_change(held(), hold, "now")["status"])
    assert status_change(shown, hold, "later") == {}
    assert status_change(shown, Hold("main", CRASHES, "other"), "later") != {}
    assert status_change(shown, None, "later") == {"status": {"podIP": None, "podIPs": None}}
    assert status_change(held(), None, "now") == {}
    unseen: dict[str, Any] = {"metadata": {}, "spec": SPEC, "status": {}}
    leaving = held() | {"metadata": {"deletionTimestamp": "now"}}
    assert status_change(unseen, hold, "now") == status_change(leaving, hold, "now") == {}


BEFORE, SINCE, AFTER = "2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z", "2026-11-20T12:00:00Z"


def pod(count: str = "2", phase: str = "Pending", bound: str = AFTER, **spec: Any) -> dict[str, Any]:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}
    return {
        "metadata": {"name": "pod", "creationTimestamp": BEFORE},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {GPU: count}}}]} | spec,
        "status": {"phase": phase, "conditions": [scheduled]},
    }


@pytest.mark.parametrize(
    ("candidate", "refused"),
    [
        (pod(), True),
        (pod(phase="Running"), True),
        (pod(bound=SINCE), True),
        (pod("0", initContainers=[{"resources": {"limits": {GPU: "3"}}}]), True),
        (pod("1"), False),
        (pod(bound=BEFORE), False),
        (pod(phase="Failed"), False),
        (pod() | {"status": {}}, False),
        (pod() | {"status": {}, "metadata": {"creationTimestamp": AFTER}}, True),
        (pod() | {"metadata": {"creationTimestamp": BEFORE, "deletionTimestamp": AFTER}}, False),
    ],
)
def test_later_pods_that_ask_for_more_are_turned_away(candidate: dict[str, Any], *, refused: bool) -> None:
    assert bool(refusal(candidate, {GPU}, SINCE)) is refused
