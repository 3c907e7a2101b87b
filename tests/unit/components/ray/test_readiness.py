"""A wait ends when what is waited for is there, and when it never will be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from berth.components.cluster.api import (
    NAMESPACES,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    ClusterError,
    UnreachableError,
)
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray import readiness
from berth.components.ray.evidence import Evidence, Key
from berth.components.ray.reasons import GONE, SIMULATED, reasons_of_job
from berth.stacks.program import awaited
from berth.stacks.program.awaited import Awaited, Waits

KEY = ("berth-nightly", "nightly-1a2b3c4d")
LONG_SECONDS = 3600.0


def job(deployment: str, state: str) -> dict[str, Any]:
    status = {"jobDeploymentStatus": deployment, "jobStatus": state, "reason": "AppFailed", "message": "exit code 3"}
    return {"metadata": {"namespace": KEY[0], "name": KEY[1]}, "spec": {}, "status": status}


class Recorded:
    """A cluster whose RayJob goes to the next state when the wait has reported the last."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self._states = list(states)
        self.reported = threading.Semaphore(0)

    def list(self, path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        return [self._states[0]] if path == RAY_JOBS else [], "1"

    def events(self, path: str, version: str, _seconds: int, **_query: str) -> Iterator[dict[str, Any]]:
        for state in self._states[1:] if path == RAY_JOBS else []:
            assert self.reported.acquire(timeout=LONG_SECONDS)
            yield {"type": "MODIFIED", "object": state | {"metadata": state["metadata"] | {"resourceVersion": version}}}


def waited(
    monkeypatch: pytest.MonkeyPatch, kind: readiness.Kind, *states: dict[str, Any]
) -> tuple[dict[Key, list[str]], list[str]]:
    """Return the result and the reports of a wait with a far deadline."""
    cluster, result = Recorded(*states), list[str]()
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: cluster)

    def report(_key: Key, text: str) -> None:
        result.append(text)
        cluster.reported.release()

    wait = readiness.Wait(
        kind=kind,
        kubeconfig="",
        selector="",
        deadlines={KEY: LONG_SECONDS},
        report=report,
        namespaces={KEY[0]},
        put_off=lambda _key, going: pytest.fail(f"nothing goes, but {going}"),
    )
    return wait.run(), result


STARTS, RUNS = job("Initializing", ""), job("Running", "RUNNING")


def test_a_job_that_runs_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, readiness.RUNNING_JOB, STARTS, RUNS) == ({}, ["waiting for its RayCluster", "running"])


def test_what_is_ready_already_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, readiness.RUNNING_JOB, RUNS) == ({}, [])


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
    return {"metadata": {"namespace": namespace, "name": "head"}, "spec": spec, "status": {"conditions": conditions}}


class StandsStill:
    """A cluster with a RayCluster that gets nowhere, and pods."""

    def __init__(self, pods: list[dict[str, Any]]) -> None:
        self._pods = pods

    def list(self, path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        if path == NAMESPACES:
            return [{"metadata": {"name": name}} for name in ("berth-bob", "berth-prod", KEY[0])], "1"
        return (self._pods if path == PODS else [{"metadata": {"namespace": KEY[0], "name": KEY[1]}}]), "1"

    def events(self, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
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
    monkeypatch.setattr(readiness, "_ROUND_SECONDS", 0)
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

    def events(self, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
        return iter(())

    def list(self, _path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        return [], "1"

    def get(self, path: str) -> dict[str, Any] | None:
        there = path == f"/apis/ray.io/v1/namespaces/{KEY[0]}/rayclusters/{KEY[1]}"
        return {"metadata": {"namespace": KEY[0], "name": KEY[1]}} if there else None


@pytest.mark.parametrize("namespace", ["", KEY[0]])
def test_an_object_without_its_label_is_found(monkeypatch: pytest.MonkeyPatch, namespace: str) -> None:
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: Unlabeled())
    wait = readiness.Wait(
        kind=readiness.Kind(RAY_CLUSTERS, lambda _: readiness.Standing("is there", done=True), lambda *_: ["missing"]),
        kubeconfig="",
        selector="berth/stack=env",
        deadlines={KEY: LONG_SECONDS},
        report=lambda *_: None,
        namespaces={KEY[0]},
        put_off=lambda *_: None,
        namespace=namespace,
    )
    assert wait.run() == {}


class Deleted(Unlabeled):
    """A cluster without the RayCluster: somebody has deleted its namespace."""

    def get(self, _path: str) -> dict[str, Any] | None:
        return None


def test_nobody_waits_for_an_object_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: Deleted())
    wait = readiness.Wait(
        kind=readiness.RAY_CLUSTER,
        kubeconfig="",
        selector="berth/stack=env",
        deadlines={KEY: LONG_SECONDS},
        report=lambda *_: None,
        namespaces={KEY[0]},
        put_off=lambda *_: None,
    )
    assert wait.run() == {KEY: [GONE]}
    problem = Awaited("RayCluster", "ready", KEY, "10m").problem([GONE])
    assert problem.startswith(f"RayCluster {'/'.join(KEY)} does not exist: it was deleted outside of Pulumi")
    assert "pulumi refresh" in problem


def test_nobody_waits_for_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    error = UnreachableError("https://127.0.0.1:6443", OSError("refused"))
    monkeypatch.setattr(awaited, "unreachable", lambda _kubeconfig: error)
    resource = Awaited("RayCluster", "ready", KEY, "10m")
    waits = Waits("env", "", [resource], {KEY[0]}, lambda *_: None, lambda *_: None)
    with pytest.raises(ClusterError, match="make lab; if the cluster is gone for good"):
        waits.run()


def ray_pod(role: str) -> dict[str, Any]:
    labels = {"ray.io/cluster": KEY[1], "ray.io/node-type": role}
    metadata = {"namespace": KEY[0], "name": role, "labels": labels, "resourceVersion": "2"}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class Recreates:
    """A cluster whose RayCluster counts pods that an edit has deleted; the new ones come later."""

    def __init__(self) -> None:
        self.lists: list[str] = []

    def list(self, path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        self.lists.append(path)
        conditions = [{"type": "HeadPodReady", "status": "True"}]
        status = {"state": "ready", "conditions": conditions, "readyWorkerReplicas": 1, "desiredWorkerReplicas": 1}
        cluster = {"metadata": {"namespace": KEY[0], "name": KEY[1]}, "spec": {}, "status": status}
        return ([cluster] if path == RAY_CLUSTERS else []), "1"

    def events(self, path: str, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
        if path == PODS:
            yield from ({"type": "ADDED", "object": ray_pod(role)} for role in ("head", "worker"))


def test_a_status_that_counts_deleted_pods_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Recreates()
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: cluster)
    wait = readiness.Wait(
        kind=readiness.RAY_CLUSTER,
        kubeconfig="",
        selector="",
        deadlines={KEY: LONG_SECONDS},
        report=lambda *_: None,
        namespaces={KEY[0]},
        put_off=lambda *_: None,
    )
    assert wait.run() == {}
    assert cluster.lists == [RAY_CLUSTERS, PODS], "the pods are listed after the status"


class Simulated:
    """A cluster whose RayJob has all its pods, on a node that KWOK plays."""

    def __init__(self, node: str) -> None:
        self._node = node

    def list(self, path: str, **_query: str) -> tuple[list[dict[str, Any]], str]:
        status = {"state": "ready", "conditions": [{"type": "HeadPodReady", "status": "True"}]}
        head, metadata = ray_pod("head"), {"namespace": KEY[0], "name": KEY[1]}
        fake = {"name": "fake", "annotations": {"kwok.x-k8s.io/node": "fake"}}
        found: dict[str, list[dict[str, Any]]] = {
            NODES: [{"metadata": fake}, {"metadata": {"name": "real"}}],
            PODS: [head | {"spec": {"nodeName": self._node}}],
            RAY_CLUSTERS: [{"metadata": metadata, "spec": {}, "status": status}],
            RAY_JOBS: [{"metadata": metadata, "spec": {}, "status": {"rayClusterName": KEY[1]}}],
        }
        return found.get(path, []), "1"

    def get(self, _path: str) -> dict[str, Any] | None:
        return None

    def events(self, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
        return iter(())


@pytest.mark.parametrize(("node", "left"), [("fake", [[]]), ("real", [])])
def test_nobody_waits_for_a_job_on_simulated_nodes(
    monkeypatch: pytest.MonkeyPatch, node: str, left: list[list[str]]
) -> None:
    monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: Simulated(node))
    put_off: list[list[str]] = []
    wait = readiness.Wait(
        kind=readiness.RUNNING_JOB,
        kubeconfig="",
        selector="",
        deadlines={KEY: LONG_SECONDS if node == "fake" else 0.1},
        report=lambda *_: None,
        namespaces={KEY[0]},
        put_off=lambda _key, going: put_off.append(going),
    )
    assert (list(wait.run()), put_off) == ([] if left else [KEY], left)
    reasons = reasons_of_job(Evidence(Simulated(node)), KEY)
    assert (reasons == [SIMULATED]) == bool(left)
