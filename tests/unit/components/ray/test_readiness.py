"""A wait ends when what is waited for is there, and when it never will be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from berth.components.cluster.api import NAMESPACES, PODS, RAY_CLUSTERS, within
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray import readiness
from berth.components.ray.reasons import Key

KEY = ("berth-nightly", "nightly-1a2b3c4d")
LONG_SECONDS = 3600.0


def job(deployment: str, state: str) -> dict[str, Any]:
    status = {"jobDeploymentStatus": deployment, "jobStatus": state, "reason": "AppFailed", "message": "exit code 3"}
    return {"metadata": {"namespace": KEY[0], "name": KEY[1]}, "spec": {}, "status": status}


class Recorded:
    """A cluster in which one RayJob goes from state to state."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self._states = list(states)

    def list(self, _path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        return [self._states[0]], "1"

    def watch(self, _path: str, _version: str, _seconds: int, **_query: str) -> Iterator[dict[str, Any]]:
        while len(self._states) > 1:
            self._states.pop(0)
            yield self._states[0]


def waited(
    monkeypatch: pytest.MonkeyPatch, kind: readiness.Kind, *states: dict[str, Any]
) -> tuple[dict[Key, list[str]], list[str]]:
    """Return the result and the reports of a wait with a far deadline."""
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: Recorded(*states))
    result: list[str] = []
    wait = readiness.Wait(
        kind=kind,
        kubeconfig="",
        selector="",
        deadlines={KEY: LONG_SECONDS},
        report=lambda _key, text: result.append(text),
        namespaces={KEY[0]},
        put_off=lambda _key, going: pytest.fail(f"nothing goes, but {going}"),
    )
    return wait.run(), result


STARTS, RUNS = job("Initializing", ""), job("Running", "RUNNING")


def test_a_job_that_runs_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, readiness.RUNNING_JOB, STARTS, RUNS) == ({}, ["waiting for its RayCluster", "running"])


def test_its_end_is_waited_for_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    failed, report = waited(monkeypatch, readiness.SUCCEEDED_JOB, STARTS, RUNS, job("Complete", "SUCCEEDED"))
    assert failed == {}
    assert report[-1] == "succeeded"


@pytest.mark.parametrize("kind", [readiness.RUNNING_JOB, readiness.SUCCEEDED_JOB])
def test_nobody_waits_for_a_job_that_has_failed(monkeypatch: pytest.MonkeyPatch, kind: readiness.Kind) -> None:
    failed, _ = waited(monkeypatch, kind, STARTS, job("Failed", "FAILED"))
    assert failed == {KEY: ["AppFailed: exit code 3"]}
    assert waited(monkeypatch, kind, job("Failed", "FAILED"))[0] == failed, "one that had failed before"


def pod(namespace: str, pool: str, node: str = "") -> dict[str, Any]:
    conditions = [] if node else [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    spec = {"nodeSelector": {POOL_LABEL: pool}} | ({"nodeName": node} if node else {})
    return {"metadata": {"namespace": namespace}, "spec": spec, "status": {"conditions": conditions}}


class StandsStill:
    """A cluster with a RayCluster that gets nowhere, and pods."""

    def __init__(self, pods: list[dict[str, Any]]) -> None:
        self._pods = pods

    def list(self, path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        if path == NAMESPACES:
            return [{"metadata": {"name": name}} for name in ("berth-bob", "berth-prod", KEY[0])], "1"
        return (self._pods if path == PODS else [{"metadata": {"namespace": KEY[0], "name": KEY[1]}}]), "1"

    def watch(self, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
        return iter(())


@pytest.mark.parametrize(
    ("others", "before"),
    [
        pytest.param([("berth-prod", "dev", "node-1")], ["berth-prod"], id="what goes has the GPUs"),
        pytest.param([("berth-prod", "cpu", "node-1")], None, id="what goes is on another pool"),
        pytest.param([("berth-bob", "dev", "node-1")], None, id="what has the GPUs stays"),
        pytest.param([("berth-prod", "dev", "")], None, id="what goes has nothing either"),
        pytest.param([("berth-mallory", "dev", "node-1")], None, id="pods of another stack have this stack's label"),
    ],
)
def test_what_waits_for_something_that_goes_is_put_off(
    monkeypatch: pytest.MonkeyPatch, others: list[tuple[str, str, str]], before: list[str] | None
) -> None:
    pods = [pod(KEY[0], "dev"), *(pod(*other) for other in others)]
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: StandsStill(pods))
    put_off: list[list[str]] = []
    kind = readiness.Kind(RAY_CLUSTERS, lambda _: readiness.Standing("waits", done=False), lambda *_: ["no room"])
    wait = readiness.Wait(
        kind=kind,
        kubeconfig="",
        selector="",
        deadlines={KEY: LONG_SECONDS if before else 0.1},
        report=lambda *_: None,
        namespaces={KEY[0], "berth-bob"},
        put_off=lambda _key, going: put_off.append(going),
    )
    assert wait.run() == ({} if before else {KEY: ["no room"]})
    assert put_off == ([before] if before else [])


class Unlabeled:
    """A cluster whose RayCluster has lost its label, so that no selector finds it."""

    def list(self, _path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        return [], "1"

    def get(self, path: str) -> dict[str, Any] | None:
        there = path == f"/apis/ray.io/v1/namespaces/{KEY[0]}/rayclusters/{KEY[1]}"
        return {"metadata": {"namespace": KEY[0], "name": KEY[1]}} if there else None


@pytest.mark.parametrize("path", [RAY_CLUSTERS, within(KEY[0], RAY_CLUSTERS)])
def test_an_object_without_its_label_is_found(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: Unlabeled())
    wait = readiness.Wait(
        kind=readiness.Kind(path, lambda _: readiness.Standing("is there", done=True), lambda *_: ["missing"]),
        kubeconfig="",
        selector="berth/stack=env",
        deadlines={KEY: LONG_SECONDS},
        report=lambda *_: None,
        namespaces={KEY[0]},
        put_off=lambda *_: None,
    )
    assert wait.run() == {}
