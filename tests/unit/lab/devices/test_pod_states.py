from __future__ import annotations

from typing import Any

from berth.lab.devices.operands import CRASHES, CREATES, Hold
from berth.lab.devices.pod_states import change

SPEC = {
    "initContainers": [{"name": "first", "image": "i"}, {"name": "second", "image": "i"}],
    "containers": [{"name": "main", "image": "i"}, {"name": "beside", "image": "i"}],
}


def pod(status: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": SPEC, "status": {"podIP": "10.0.0.1"} | (status or {})}


def states(hold: Hold) -> tuple[str, dict[str, str]]:
    """The phase, and for each container the kind of its state with the reason."""
    status = change(pod(), hold, "now")["status"]
    found = {}
    for each in [*status["initContainerStatuses"], *status["containerStatuses"]]:
        ((kind, state),) = each["state"].items()
        found[each["name"]] = f"{kind} {state.get('reason', '')}".strip()
    return status["phase"], found


def test_an_init_container_that_waits_keeps_those_after_it() -> None:
    expected = {"first": "terminated Completed", "second": "running", "main": "waiting PodInitializing"}
    assert states(Hold("second", "", "waits")) == ("Pending", expected | {"beside": "waiting PodInitializing"})


def test_a_pod_without_a_sandbox_has_started_nothing() -> None:
    phase, found = states(Hold("", CREATES, "no runtime"))
    assert phase == "Pending"
    assert set(found.values()) == {"waiting ContainerCreating"}


def test_a_container_that_crashes_leaves_the_one_beside_it() -> None:
    expected = {"main": "waiting CrashLoopBackOff", "beside": "running"}
    phase, found = states(Hold("main", CRASHES, "bad config"))
    assert phase == "Running"
    assert {name: found[name] for name in expected} == expected


def test_a_hold_is_shown_once_and_given_back_once() -> None:
    hold = Hold("main", CRASHES, "bad config")
    shown = pod(change(pod(), hold, "now")["status"])
    assert change(shown, hold, "later") == {}
    assert change(shown, Hold("main", CRASHES, "other"), "later") != {}
    assert change(shown, None, "later") == {"status": {"podIP": None, "podIPs": None}}
    assert change(pod(), None, "now") == {}


def test_a_pod_that_kwok_has_not_seen_or_that_goes_is_left_alone() -> None:
    hold = Hold("main", CRASHES, "bad config")
    assert change({"metadata": {}, "spec": SPEC, "status": {}}, hold, "now") == {}
    assert change(pod() | {"metadata": {"deletionTimestamp": "now"}}, hold, "now") == {}
