"""Status of pods that wait on a node for what is missing there."""

import pytest

from berth.components.cluster.api import Object
from berth.lab.devices.kubelet import Hold, status_change

HOLD = Hold("no NVIDIA driver", "FailedCreatePodSandBox")
NOW = "2026-01-01T00:00:00Z"


def pod(**more: Object) -> Object:
    container = {"name": "ray", "image": "example.com/ray:1"}
    running: Object = {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "metadata": {"name": "a"},
        "spec": {"containers": [container]},
        "status": running,
        **more,
    }


def test_a_hold_is_shown_once_and_given_back() -> None:
    shown = status_change(pod(), HOLD, NOW)
    assert shown["status"]["phase"] == "Pending"
    held = pod(status={"podIP": "10.0.0.1", **shown["status"]})
    assert status_change(held, HOLD, NOW) == {}
    assert status_change(held, None, NOW) == {"status": {"podIP": None, "podIPs": None}}


@pytest.mark.parametrize(
    "other",
    [
        pod(metadata={"name": "a", "deletionTimestamp": NOW}),
        pod(status={}),
    ],
)
def test_a_pod_that_leaves_or_has_no_address_yet_is_not_written(other: Object) -> None:
    assert status_change(other, HOLD, NOW) == {}
    assert status_change(other, None, NOW) == {}
