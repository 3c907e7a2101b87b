"""A wait ends when what is waited for is there, and when it never will be."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from berth.components.cluster.api import (
    NAMESPACES,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    ClusterApi,
    ClusterError,
    UnreachableError,
)
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray import readiness
from berth.components.ray.evidence import Evidence, Key
from berth.components.ray.reasons import GONE, SIMULATED, reasons_of_job
from berth.stacks.program import awaited
from berth.stacks.program.awaited import Awaited, Waits
from tests.unit.recorded_cluster import RecordedCluster

Object = dict[str, Any]
Waiter = Callable[..., tuple[dict[Key, list[str]], list[str], list[list[str]]]]

KEY = ("berth-nightly", "nightly-1a2b3c4d")
LONG_SECONDS = 3600.0
READY: Object = {"state": "ready", "conditions": [{"type": "HeadPodReady", "status": "True"}]}


def named(status: Object | None = None, **metadata: Any) -> Object:
    """The object that is waited for."""
    known = {"namespace": KEY[0], "name": KEY[1]} | metadata
    return {"metadata": known, "spec": {}, "status": status or {}}


def job(deployment: str, state: str) -> Object:
    return named(
        {"jobDeploymentStatus": deployment, "jobStatus": state, "reason": "AppFailed", "message": "exit code 3"}
    )


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Waiter:
    """Wait on a cluster; return the reasons, the reports and what is put off."""

    def waited(
        cluster: ClusterApi,
        kind: readiness.Kind,
        *,
        seconds: float = LONG_SECONDS,
        reported: Callable[[], object] = lambda: None,
        selector: str = "",
        namespace: str = "",
        stay: tuple[str, ...] = (KEY[0],),
    ) -> tuple[dict[Key, list[str]], list[str], list[list[str]]]:
        monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: cluster)
        monkeypatch.setattr(readiness, "_ROUND_SECONDS", 0)
        monkeypatch.setattr(readiness, "_PAUSE_SECONDS", 0.1)
        reports: list[str] = []
        put_off: list[list[str]] = []

        def report(_key: Key, text: str) -> None:
            reports.append(text)
            reported()

        found = readiness.Wait(
            kind=kind,
            kubeconfig="",
            selector=selector,
            deadlines={KEY: seconds},
            report=report,
            namespaces=set(stay),
            put_off=lambda _key, going: put_off.append(going),
            namespace=namespace,
        )
        return found.run(), reports, put_off

    return waited


class Moves(RecordedCluster):
    """A cluster whose RayJob goes to the next state when the wait has reported the last."""

    def __init__(self, *states: Object) -> None:
        super().__init__({RAY_JOBS: [states[0]]})
        self._later = states[1:]
        self.reported = threading.Semaphore(0)

    def events(self, path: str, version: str, seconds: int, **query: str) -> Iterator[Object]:
        del seconds, query
        for state in self._later if path == RAY_JOBS else ():
            assert self.reported.acquire(timeout=LONG_SECONDS)
            yield {"type": "MODIFIED", "object": state | {"metadata": state["metadata"] | {"resourceVersion": version}}}


def moved(wait: Waiter, kind: readiness.Kind, *states: Object) -> tuple[dict[Key, list[str]], list[str]]:
    cluster = Moves(*states)
    failed, reports, put_off = wait(cluster, kind, reported=cluster.reported.release)
    assert put_off == []
    return failed, reports


STARTS, RUNS = job("Initializing", ""), job("Running", "RUNNING")


def test_a_job_that_runs_is_waited_for_no_longer(wait: Waiter) -> None:
    assert moved(wait, readiness.RUNNING_JOB, STARTS, RUNS) == ({}, ["waiting for its RayCluster", "running"])
    assert moved(wait, readiness.RUNNING_JOB, RUNS) == ({}, []), "what is ready already is not reported"


def test_its_end_is_waited_for_where_that_is_asked_for(wait: Waiter) -> None:
    failed, report = moved(wait, readiness.SUCCEEDED_JOB, STARTS, RUNS, job("Complete", "SUCCEEDED"))
    assert (failed, report[-1]) == ({}, "succeeded")


@pytest.mark.parametrize("kind", [readiness.RUNNING_JOB, readiness.SUCCEEDED_JOB])
def test_nobody_waits_for_a_job_that_has_failed(wait: Waiter, kind: readiness.Kind) -> None:
    for states in ([STARTS, job("Failed", "FAILED")], [job("Failed", "FAILED")]):
        assert moved(wait, kind, *states)[0] == {KEY: ["AppFailed: exit code 3"]}


def pod(namespace: str, pool: str, node: str = "") -> Object:
    conditions = [] if node else [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    spec = {"nodeSelector": {POOL_LABEL: pool}} | ({"nodeName": node} if node else {})
    return {"metadata": {"namespace": namespace, "name": "head"}, "spec": spec, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("other", "before"),
    [
        pytest.param(("berth-prod", "dev", "node-1"), ["berth-prod"], id="what goes has the GPUs"),
        pytest.param(("berth-prod", "cpu", "node-1"), None, id="what goes is on another pool"),
        pytest.param(("berth-bob", "dev", "node-1"), None, id="what has the GPUs stays"),
        pytest.param(("berth-prod", "dev", ""), None, id="what goes has nothing either"),
        pytest.param(("berth-mallory", "dev", "node-1"), None, id="pods of another stack have this stack's label"),
    ],
)
def test_what_waits_for_something_that_goes_is_put_off(
    wait: Waiter, other: tuple[str, str, str], before: list[str] | None
) -> None:
    namespaces = [{"metadata": {"name": name}} for name in ("berth-bob", "berth-prod", KEY[0])]
    pods = [pod(KEY[0], "dev"), pod(*other)]
    cluster = RecordedCluster({NAMESPACES: namespaces, PODS: pods, RAY_CLUSTERS: [named()]})
    kind = readiness.Kind(RAY_CLUSTERS, lambda _: readiness.Standing("waits", done=False), lambda *_: ["no room"])
    failed, _, put_off = wait(cluster, kind, seconds=LONG_SECONDS if before else 0.1, stay=(KEY[0], "berth-bob"))
    assert (failed, put_off) == (({}, [before]) if before else ({KEY: ["no room"]}, []))


@pytest.mark.parametrize("namespace", ["", KEY[0]])
def test_an_object_without_its_label_is_found(wait: Waiter, namespace: str) -> None:
    kind = readiness.Kind(RAY_CLUSTERS, lambda _: readiness.Standing("is there", done=True), lambda *_: ["missing"])
    cluster = RecordedCluster({RAY_CLUSTERS: [named()]})
    assert wait(cluster, kind, selector="berth/stack=env", namespace=namespace)[0] == {}


def test_nobody_waits_for_an_object_that_does_not_exist(wait: Waiter) -> None:
    assert wait(RecordedCluster(), readiness.RAY_CLUSTER, selector="berth/stack=env")[0] == {KEY: [GONE]}
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


def ray_pod(role: str, node: str = "") -> Object:
    labels = {"ray.io/cluster": KEY[1], "ray.io/node-type": role}
    found = named({"conditions": [{"type": "Ready", "status": "True"}]}, name=role, labels=labels, resourceVersion="2")
    return found | {"spec": {"nodeName": node}}


class Recreates(RecordedCluster):
    """A cluster whose RayCluster counts pods that an edit has deleted; the new ones come later."""

    def __init__(self) -> None:
        super().__init__({RAY_CLUSTERS: [named(READY | {"readyWorkerReplicas": 1, "desiredWorkerReplicas": 1})]})
        self.lists: list[str] = []

    def list(self, path: str, **query: str) -> Any:
        self.lists.append(path)
        return super().list(path, **query)

    def events(self, path: str, version: str, seconds: int, **query: str) -> Iterator[Object]:
        del version, seconds, query
        if path == PODS:
            yield from ({"type": "ADDED", "object": ray_pod(role)} for role in ("head", "worker"))


def test_a_status_that_counts_deleted_pods_is_not_believed(wait: Waiter) -> None:
    cluster = Recreates()
    assert wait(cluster, readiness.RAY_CLUSTER)[0] == {}
    assert cluster.lists == [RAY_CLUSTERS, PODS], "the pods are listed after the status"


@pytest.mark.parametrize(("node", "left"), [("fake", [[]]), ("real", [])])
def test_nobody_waits_for_a_job_on_simulated_nodes(wait: Waiter, node: str, left: list[list[str]]) -> None:
    fake = {"name": "fake", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    objects: dict[str, list[Object]] = {
        NODES: [{"metadata": fake}, {"metadata": {"name": "real"}}],
        PODS: [ray_pod("head", node)],
        RAY_CLUSTERS: [named(READY)],
        RAY_JOBS: [named({"rayClusterName": KEY[1]})],
    }
    cluster = RecordedCluster(objects)
    failed, _, put_off = wait(cluster, readiness.RUNNING_JOB, seconds=LONG_SECONDS if left else 0.1)
    assert (list(failed), put_off) == ([] if left else [KEY], left)
    assert (reasons_of_job(Evidence(cluster), KEY) == [SIMULATED]) == bool(left)
