"""A wait ends when what is waited for is there, and when it never will be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from components.ray import readiness

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
) -> tuple[dict[readiness.Key, list[str]], list[str]]:
    """What a wait with a far deadline returns, and what it has reported."""
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: Recorded(*states))
    told: list[str] = []
    wait = readiness.Wait(
        kind=kind,
        kubeconfig="",
        selector="",
        deadlines={KEY: LONG_SECONDS},
        report=lambda _key, text: told.append(text),
        namespaces={KEY[0]},
        put_off=lambda _key, going: pytest.fail(f"nothing goes, but {going}"),
    )
    return wait.run(), told


STARTS, RUNS = job("Initializing", ""), job("Running", "RUNNING")


def test_a_job_that_runs_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, readiness.RUNNING_JOB, STARTS, RUNS) == ({}, ["waiting for its RayCluster", "running"])


def test_its_end_is_waited_for_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    failed, told = waited(monkeypatch, readiness.SUCCEEDED_JOB, STARTS, RUNS, job("Complete", "SUCCEEDED"))
    assert failed == {}
    assert told[-1] == "succeeded"


@pytest.mark.parametrize("kind", [readiness.RUNNING_JOB, readiness.SUCCEEDED_JOB])
def test_nobody_waits_for_a_job_that_has_failed(monkeypatch: pytest.MonkeyPatch, kind: readiness.Kind) -> None:
    failed, _ = waited(monkeypatch, kind, STARTS, job("Failed", "FAILED"))
    assert failed == {KEY: ["AppFailed: exit code 3"]}
    assert waited(monkeypatch, kind, job("Failed", "FAILED"))[0] == failed, "one that had failed before"
