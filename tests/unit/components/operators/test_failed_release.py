"""Reasons of a release whose time is over, from its pods and events."""

from typing import Any

from berth.components.operators.failed_release import lines_of_release

WARNING = {"reason": "FailedCreate", "message": "pods is forbidden: exceeded quota: pods"}


def pod(name: str, waiting: dict[str, str] | None) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "False" if waiting else "True"}]
    containers = [{"name": "operator", "state": {"waiting": waiting}}] if waiting else []
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {"conditions": conditions, "containerStatuses": containers},
    }


def test_a_pod_that_waits_is_named_with_its_reason() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    pods = [pod("kuberay-operator-1", waiting), pod("kuberay-operator-2", None)]
    (line,) = lines_of_release("kuberay-operator", "kuberay-system", pods, [WARNING])
    assert line == (
        "Helm release kuberay-operator: kuberay-operator-1: pod, container operator:"
        " ImagePullBackOff: no such image"
    )


def test_a_release_without_pods_has_the_warnings_of_its_namespace() -> None:
    assert lines_of_release("gpu-operator", "gpu-operator", [], [WARNING, WARNING]) == [
        "Helm release gpu-operator has no pods in namespace gpu-operator",
        "Helm release gpu-operator: FailedCreate: pods is forbidden: exceeded quota: pods",
    ]


def test_pods_that_are_ready_by_now_were_slow() -> None:
    (line,) = lines_of_release("kuberay-operator", "kuberay-system", [pod("one", None)], [])
    assert "ready by now" in line
