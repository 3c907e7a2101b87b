"""Statuses of pods that are held."""

from typing import Any

from berth.lab.devices.kubelet import Hold, status_change

SPEC = {"containers": [{"name": "main", "image": "i"}, {"name": "beside", "image": "i"}]}


def held(status: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": SPEC, "status": {"podIP": "10.0.0.1"} | (status or {})}


def test_a_hold_is_shown_once_and_given_back_once() -> None:
    hold = Hold("bad config", "BackOff", "main", "CrashLoopBackOff")
    change = status_change(held(), hold, "now")["status"]
    reasons = [container["state"]["waiting"]["reason"] for container in change["containerStatuses"]]
    assert (change["phase"], reasons) == ("Pending", ["CrashLoopBackOff", "ContainerCreating"])
    shown = held(change)
    assert status_change(shown, hold, "later") == {}
    assert status_change(shown, Hold("other", "BackOff"), "later") != {}
    assert status_change(shown, None, "later") == {"status": {"podIP": None, "podIPs": None}}
    assert status_change(held(), None, "now") == {}
    unseen: dict[str, Any] = {"metadata": {}, "spec": SPEC, "status": {}}
    leaving = held() | {"metadata": {"deletionTimestamp": "now"}}
    assert status_change(unseen, hold, "now") == status_change(leaving, hold, "now") == {}
