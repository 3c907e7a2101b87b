from __future__ import annotations

from typing import Any

import pytest

from berth.lab.plugins.kubernetes import objects
from berth.lab.plugins.kubernetes.readiness import FailedError, condition_of, unmet
from berth.lab.plugins.provider import ProviderError


def wanted(kind: str, api_version: str = "ray.io/v1", **annotations: str) -> dict[str, Any]:
    keys = {"wait_for": objects.WAIT_FOR, "skip_await": objects.SKIP_AWAIT}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"annotations": {keys[key]: value for key, value in annotations.items()}},
    }


def verdict(item: dict[str, Any], state: dict[str, Any]) -> tuple[bool, str]:
    condition = condition_of(item)
    assert condition
    return condition(state)


def test_custom_resources_are_not_waited_for() -> None:
    assert condition_of(wanted("RayCluster")) is None


def test_skipping_wins() -> None:
    assert condition_of(wanted("Deployment", "apps/v1", skip_await="true")) is None
    assert condition_of(wanted("RayCluster", wait_for="jsonpath={.a}", skip_await="true")) is None


def test_a_path_waits_for_the_controller_to_have_seen_the_spec() -> None:
    item = wanted("RayCluster", wait_for="jsonpath={.status.state}=ready")
    seen: dict[str, Any] = {"metadata": {"generation": 2}, "status": {"state": "ready", "observedGeneration": 1}}
    assert verdict(item, seen) == (False, "")
    seen["status"]["observedGeneration"] = 2
    assert verdict(item, seen) == (True, "Found {.status.state}=ready")


def test_conditions() -> None:
    item = wanted("RayCluster", wait_for="condition=HeadPodReady")
    assert verdict(item, {}) == (False, "Has no .status.conditions")
    state = {"status": {"conditions": [{"type": "headpodready", "status": "False"}]}}
    assert verdict(item, state) == (False, "Resource has condition HeadPodReady=False (want True)")
    assert verdict(wanted("RayCluster", wait_for="condition=HeadPodReady=False"), state)[0]
    state["status"]["conditions"][0]["status"] = "true"
    assert verdict(item, state)[0]


def test_all_of_several() -> None:
    item = wanted("RayCluster", wait_for='["jsonpath={.a}=1", "condition=Ready"]')
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert not verdict(item, ready)[0]
    assert verdict(item, {**ready, "a": 1})[0]


@pytest.mark.parametrize("text", ["ready", "[]", "[1]", "jsonpath=.a", '["condition=A", "what"]'])
def test_what_cannot_be_waited_for_is_refused(text: str) -> None:
    with pytest.raises(ProviderError):
        condition_of(wanted("RayCluster", wait_for=text))


def test_a_deployment_is_ready_when_rolled_out() -> None:
    item = wanted("Deployment", "apps/v1")
    state: dict[str, Any] = {
        "metadata": {"generation": 2},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1},
    }
    ready, message = verdict(item, state)
    assert not ready
    assert "(1/2 Pods available)" in message
    state["status"]["availableReplicas"] = 2
    assert verdict(item, state)[0]
    state["status"]["observedGeneration"] = 1
    assert not verdict(item, state)[0]


def test_a_deployment_may_fail_for_good() -> None:
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "no"}
    state = {"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": [stuck]}}
    with pytest.raises(FailedError, match="ProgressDeadlineExceeded"):
        verdict(wanted("Deployment", "apps/v1"), state)


def test_what_an_object_says_of_itself() -> None:
    conditions = [
        {"type": "A", "status": "True", "reason": "Fine", "message": "all well"},
        {"type": "B", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"},
    ]
    assert unmet({"status": {"conditions": conditions}}) == ["[Unschedulable] 0/3 nodes"]
