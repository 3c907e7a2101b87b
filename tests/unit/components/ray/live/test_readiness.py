"""A wait ends when what is waited for is there, and when it never will be."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from berth.components.cluster.api import (
    NAMESPACES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    ClusterApi,
    ClusterError,
    UnreachableError,
)
from berth.components.core.owner import STACK_LABEL
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.live import goals, readiness
from berth.components.ray.live.goals import Awaited, Goal, Standing, Until
from berth.components.ray.live.readiness import ReadinessWait
from berth.components.ray.live.reasons import GONE
from tests.unit.recorded_cluster import RecordedCluster

Object = dict[str, Any]
Waited = tuple[dict[Awaited, list[str]], list[str], list[str]]
Waiter = Callable[..., Waited]

KEY = ("berth-nightly", "nightly-1a2b3c4d")
LONG_SECONDS = 3600.0
CLUSTER = Awaited("RayCluster", "ready", KEY, "1h")
RUNNING = Awaited("RayJob", "running", KEY, "1h")
SUCCEEDED = Awaited("RayJob", "succeeded", KEY, "1h")
OF_STACK = {STACK_LABEL: "env"}
AGAIN = (
    "a job runs once: to run it again, edit it, for example jobs.nightly.runtimeEnv: {env_vars:"
    ' {RUN: "2"}}; or take jobs.nightly out of the settings'
)
READY: Object = {"state": "ready", "conditions": [{"type": "HeadPodReady", "status": "True"}]}


def named(status: Object | None = None, **metadata: Any) -> Object:
    """The object that is waited for."""
    known = {"namespace": KEY[0], "name": KEY[1], "labels": OF_STACK} | metadata
    return {"metadata": known, "spec": {}, "status": status or {}}


def job(deployment: str, state: str, **metadata: Any) -> Object:
    status = {
        "jobDeploymentStatus": deployment,
        "jobStatus": state,
        "reason": "AppFailed",
        "message": "exit code 3",
    }
    return named(status, **metadata)


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Waiter:
    """Wait on a cluster; return the reasons, the reports and what is put off."""

    def waited(
        cluster: ClusterApi,
        resource: Awaited,
        *,
        others: Sequence[Awaited] = (),
        goal: Goal | None = None,
        reported: Callable[[], object] = lambda: None,
        stay: tuple[str, ...] = (KEY[0],),
        once: bool = False,
        began: datetime | None = None,
    ) -> Waited:
        monkeypatch.setattr(readiness, "ClusterApi", lambda _kubeconfig: cluster)
        monkeypatch.setattr(readiness, "unreachable", lambda _kubeconfig: None)
        monkeypatch.setattr(readiness, "_ROUND_SECONDS", 0)
        monkeypatch.setattr(readiness, "_PAUSE_SECONDS", 0.1)
        monkeypatch.setitem(goals.GOALS, (resource.kind, resource.until), goal or resource.goal)
        reports: list[str] = []
        put_off: list[str] = []

        def report(_resource: Awaited, text: str) -> None:
            reports.append(text)
            reported()

        found = ReadinessWait(
            "env",
            "",
            [resource, *others],
            set(stay),
            report,
            lambda _, warning: put_off.append(warning),
            began,
            once=once,
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
        for state in self._later if path.endswith("/rayjobs") else ():
            assert self.reported.acquire(timeout=LONG_SECONDS)
            yield {
                "type": "MODIFIED",
                "object": state | {"metadata": state["metadata"] | {"resourceVersion": version}},
            }


def moved(
    wait: Waiter, resource: Awaited, *states: Object
) -> tuple[dict[Awaited, list[str]], list[str]]:
    cluster = Moves(*states)
    failed, reports, put_off = wait(cluster, resource, reported=cluster.reported.release)
    assert put_off == []
    return failed, reports


STARTS = job("Initializing", "")
RUNS = job("Running", "RUNNING")


def test_a_job_that_runs_is_waited_for_no_longer(wait: Waiter) -> None:
    assert moved(wait, RUNNING, STARTS, RUNS) == ({}, ["waiting for its RayCluster", "running"])
    assert moved(wait, RUNNING, RUNS) == ({}, []), "what is ready already is not reported"


@pytest.mark.parametrize(
    ("state", "ready"), [(RUNS, True), (STARTS, False), (job("Failed", "FAILED"), False)]
)
def test_one_look_says_whether_there_is_anything_to_wait_for(
    wait: Waiter, state: Object, ready: bool
) -> None:
    assert (wait(RecordedCluster({RAY_JOBS: [state]}), RUNNING, once=True)[0] == {}) == ready


def test_its_end_is_waited_for_where_that_is_asked_for(wait: Waiter) -> None:
    failed, report = moved(wait, SUCCEEDED, STARTS, RUNS, job("Complete", "SUCCEEDED"))
    assert (failed, report[-1]) == ({}, "succeeded")


@pytest.mark.parametrize("resource", [RUNNING, SUCCEEDED], ids=str)
def test_nobody_waits_for_a_job_that_has_failed(wait: Waiter, resource: Awaited) -> None:
    for states in ([STARTS, job("Failed", "FAILED")], [job("Failed", "FAILED")]):
        failed = moved(wait, resource, *states)[0]
        assert failed[resource][0] == "AppFailed: exit code 3"


class Late(RecordedCluster):
    """A cluster whose RayClusters are suspended once all are reported twice: late, and why."""

    def __init__(self, count: int) -> None:
        self.asked: list[str] = []
        self.reported = threading.Semaphore(0)
        self.resources = [
            Awaited("RayCluster", "ready", (f"berth-{number}", f"late-{number}"), "20s")
            for number in range(count)
        ]
        keys = [resource.key for resource in self.resources]
        clusters = [named(namespace=namespace, name=name) for namespace, name in keys]
        pods = [pod(namespace, "dev", labels={"ray.io/cluster": name}) for namespace, name in keys]
        super().__init__({RAY_CLUSTERS: clusters, PODS: pods})

    def get(self, path: str) -> Object | None:
        self.asked.append(path)
        return super().get(path)

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        self.asked.append(f"{path} {query}")
        return super().list(path, **query)

    def events(self, path: str, version: str, seconds: int, **query: str) -> Iterator[Object]:
        del seconds
        if (path, version) != (RAY_CLUSTERS, "1") or "labelSelector" not in query:
            return
        for _ in range(2 * len(self.resources)):
            assert self.reported.acquire(timeout=LONG_SECONDS)
        for item in self.objects[RAY_CLUSTERS]:
            metadata = item["metadata"] | {"resourceVersion": "2"}
            over = {"spec": {"suspend": True}, "status": {"state": "suspended"}}
            yield {"type": "MODIFIED", "object": item | over | {"metadata": metadata}}


def test_many_late_berths_are_asked_about_as_often_as_few(wait: Waiter) -> None:
    asked = []
    for count in (2, 40):
        cluster = Late(count)
        first, *others = cluster.resources
        failed, reports, _ = wait(
            cluster,
            first,
            others=others,
            reported=cluster.reported.release,
            stay=tuple(resource.key[0] for resource in cluster.resources),
        )
        assert failed == {}
        assert len([text for text in reports if "Unschedulable" in text]) == count
        asked.append(sorted(cluster.asked))
    assert asked[0] == asked[1]


def pod(namespace: str, pool: str, node: str = "", **metadata: Any) -> Object:
    conditions = (
        [] if node else [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    )
    spec = {"nodeSelector": {POOL_LABEL: pool}} | ({"nodeName": node} if node else {})
    known = {"namespace": namespace, "name": "head"} | metadata
    return named({"conditions": conditions}, **known) | {"spec": spec}


@pytest.mark.parametrize(
    ("other", "before"),
    [
        pytest.param(("berth-prod", "dev", "node-1"), ["berth-prod"], id="what goes has the GPUs"),
        pytest.param(("berth-prod", "cpu", "node-1"), None, id="what goes is on another pool"),
        pytest.param(("berth-bob", "dev", "node-1"), None, id="what has the GPUs stays"),
        pytest.param(("berth-prod", "dev", ""), None, id="what goes has nothing either"),
        pytest.param(
            ("berth-mallory", "dev", "node-1"),
            None,
            id="pods of another stack have this stack's label",
        ),
    ],
)
def test_what_waits_for_something_that_goes_is_put_off(
    wait: Waiter, other: tuple[str, str, str], before: list[str] | None
) -> None:
    namespaces = [
        {"metadata": {"name": name, "labels": OF_STACK}}
        for name in ("berth-bob", "berth-prod", KEY[0])
    ]
    pods = [pod(KEY[0], "dev"), pod(*other)]
    cluster = RecordedCluster({NAMESPACES: namespaces, PODS: pods, RAY_CLUSTERS: [named()]})
    goal = Goal(RAY_CLUSTERS, lambda _: Standing("waits", done=False), lambda *_: ["no room"])
    resource = replace(CLUSTER, timeout="1h" if before else "1s")
    failed, _, put_off = wait(cluster, resource, goal=goal, stay=(KEY[0], "berth-bob"))
    if before:
        assert (failed, put_off) == ({}, [resource.put_off("env", before)])
    else:
        assert (failed, put_off) == ({resource: ["no room"]}, [])


@pytest.mark.parametrize("until", ["running", "succeeded"])
def test_a_job_that_failed_before_the_update_fails_no_later_one(wait: Waiter, until: Until) -> None:
    failing = job("Failed", "FAILED", creationTimestamp="2026-11-28T10:00:00Z")
    cluster = RecordedCluster({RAY_JOBS: [failing]})
    resource = replace(RUNNING, until=until)
    old = datetime(2026, 11, 28, 10, 30, tzinfo=UTC)
    failed, _, warnings = wait(cluster, resource, began=old)
    assert failed == {}
    name = f"RayJob {'/'.join(KEY)}"
    assert warnings == [f"{name} of an earlier update failed: AppFailed: exit code 3; {AGAIN}"]


def test_a_job_of_this_update_that_fails_fails_it(wait: Waiter) -> None:
    failing = job("Failed", "FAILED", creationTimestamp="2026-11-28T10:00:00Z")
    began = datetime(2026, 11, 28, 9, 59, tzinfo=UTC)
    failed, _, warnings = wait(RecordedCluster({RAY_JOBS: [failing]}), RUNNING, began=began)
    assert warnings == []
    assert failed == {RUNNING: ["AppFailed: exit code 3", AGAIN]}


def test_an_object_without_its_label_is_found(wait: Waiter) -> None:
    assert (
        wait(RecordedCluster({RAY_JOBS: [job("Running", "RUNNING", labels={})]}), RUNNING)[0] == {}
    )


def test_nobody_waits_for_an_object_that_does_not_exist(wait: Waiter) -> None:
    assert wait(RecordedCluster(), CLUSTER)[0] == {CLUSTER: [GONE]}
    problem = CLUSTER.problem([GONE])
    assert problem.startswith(
        f"RayCluster {'/'.join(KEY)} does not exist: it was deleted outside of Pulumi"
    )
    assert "pulumi refresh" in problem


def test_nobody_waits_for_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    error = UnreachableError("https://127.0.0.1:6443", OSError("refused"))
    monkeypatch.setattr(readiness, "unreachable", lambda _kubeconfig: error)
    with pytest.raises(ClusterError, match="make lab; if the cluster is gone for good"):
        ReadinessWait("env", "", [CLUSTER], {KEY[0]}, lambda *_: None, lambda *_: None).run()


def ray_pod(role: str, node: str = "") -> Object:
    labels = {"ray.io/cluster": KEY[1], "ray.io/node-type": role}
    found = named(
        {"conditions": [{"type": "Ready", "status": "True"}]},
        name=role,
        labels=labels,
        resourceVersion="2",
    )
    return found | {"spec": {"nodeName": node}}


class Recreates(RecordedCluster):
    """A cluster whose RayCluster counts pods that an edit has deleted; the new ones come later."""

    def __init__(self) -> None:
        super().__init__(
            {RAY_CLUSTERS: [named(READY | {"readyWorkerReplicas": 1, "desiredWorkerReplicas": 1})]}
        )
        self.lists: list[str] = []

    def list(self, path: str, **query: str) -> Any:
        self.lists.append(path.rpartition("/")[2])
        return super().list(path, **query)

    def events(self, path: str, version: str, seconds: int, **query: str) -> Iterator[Object]:
        del version, seconds, query
        if path.endswith("/pods"):
            yield from ({"type": "ADDED", "object": ray_pod(role)} for role in ("head", "worker"))


def test_a_status_that_counts_deleted_pods_is_not_believed(wait: Waiter) -> None:
    cluster = Recreates()
    assert wait(cluster, CLUSTER)[0] == {}
    assert cluster.lists == ["rayclusters", "pods"], "the pods are listed after the status"
