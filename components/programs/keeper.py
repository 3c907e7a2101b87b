"""Program of the keeper: one pass over all berths with a lifecycle, which suspends or wakes each.

The program runs in a pod with the environment's Ray image (lifecycle/manifests.py), or anywhere
with a kubeconfig. It needs only Python, and its state is in annotations: of the RayClusters, and of
a quota that no tenant may write.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from berth.components.programs.decision import (
    BEGUN,
    CLOSED,
    KEEPER,
    WOKEN_AT,
    BerthState,
    Decision,
    Work,
    decision_for,
    state_of,
    timestamp,
)
from berth.components.programs.jobs import running_jobs
from berth.components.programs.lifetimes import Lifetime, lifetime_of, settled
from berth.components.programs.logins import open_login
from berth.components.programs.servers import (
    MOST_BYTES,
    SECONDS,
    SMALL_PAGE,
    ApiError,
    JsonServer,
    server_of_kubeconfig,
    server_of_pod,
)
from berth.components.programs.workloads import (
    Key,
    NamespaceDecision,
    NamespaceWorkload,
    Pod,
    berth_in_pass,
    namespace_decision,
    pod_of,
    workload_of,
)

Object = dict[str, Any]

DASHBOARD = "http://{ip}:8265"
"""Address of a head's dashboard, from the pod's address."""

PREFIX = "berth-"
"""Prefix of a berth's namespace before the name of the berth, and of its RayCluster."""

CLOSING = "closed-until-berth-wakes"
"""ResourceQuota of a berth's namespace without a limit, until the keeper refuses all new pods. A
refused pod's event has this name."""

RAY = "/apis/ray.io/v1/namespaces/{namespace}"
QUOTA = f"/api/v1/namespaces/{{namespace}}/resourcequotas/{CLOSING}"
_PATHS = {
    **{kind: f"{RAY}/{kind.lower()}s" for kind in ("RayCluster", "RayJob", "RayService")},
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
}
_BESIDE = ("RayJob", "RayService")

_AT_ONCE = 16
_ATTEMPTS = 3
_LONGEST_ERROR = 500

# Idle actors that Ray's libraries leave behind (ray 2.60: ray/data, ray/train); their other actors
# are in namespaces that begin with "_".
_HELPERS = {"AutoscalingCoordinator", "DataUsageCollectionActor"}
_ACTORS = "/api/v0/actors?limit=1000&filter_keys=state&filter_predicates=!%3D&filter_values=DEAD"


@dataclass(frozen=True)
class _BerthNamespace:
    """Objects in a berth's namespace."""

    namespace: str
    """Name of the namespace."""
    name: str
    """Name of the berth, and of its RayCluster."""
    space: Object
    """The namespace."""
    lifetime: Lifetime
    """Lifecycle of the berth."""
    cluster: Object | None
    """The RayCluster of the berth; None if it is gone."""
    quota: Object | None
    """The quota that closes the namespace; None if there is none."""
    workloads: Sequence[NamespaceWorkload]
    """RayClusters, RayJobs and RayServices."""

    @property
    def state(self) -> BerthState:
        """State of the berth; without a RayCluster it is as old as its namespace."""
        state = state_of(self.cluster or {"metadata": self.space["metadata"]})
        noted = _annotations(self.quota).get(BEGUN) if self.quota else None
        return replace(state, begun=datetime.fromisoformat(noted)) if noted else state


@dataclass(frozen=True)
class KeeperPass:
    """Pass over all berths."""

    api: JsonServer
    """The API server."""
    now: datetime
    """Time of the pass."""
    dashboard: str = DASHBOARD
    """Address of heads' dashboards: a format of {ip}, {namespace} and {name}."""
    dry: bool = False
    """Whether to change nothing."""

    def reports(self, selector: str) -> Iterator[Object]:
        """Suspend and wake the berths of a selector; yield reports, with an `error` for a failure.

        Raises:
            ApiError: the API server does not answer.
        """
        # Users of a berth may change the labels of its RayCluster, and not those of its namespace.
        spaces = list(self.api.items("/api/v1/namespaces", labelSelector=selector))
        # A pass that is ended before its end, for many heads that do not answer, leaves others out
        # each time.
        random.shuffle(spaces)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for future in as_completed([pool.submit(self._report, space) for space in spaces]):
                report = future.result()
                if report:
                    yield report

    def _report(self, space: Object) -> Object | None:
        """Return the report of a namespace; None for a berth without a lifecycle."""
        namespace = space["metadata"]["name"]
        name = namespace.removeprefix(PREFIX)
        report: Object = {"rayCluster": f"{namespace}/{name}"}
        try:
            contents = self._namespace(space, name)
            return report | self._done_in(contents) if contents else None
        except Exception as error:  # noqa: BLE001 - whatever a berth does, the others have their pass
            return report | {"error": (f"{error}" or repr(error))[:_LONGEST_ERROR]}

    def _namespace(self, space: Object, name: str) -> _BerthNamespace | None:
        """Return what is in a namespace; None without a lifecycle."""
        namespace = space["metadata"]["name"]
        cluster = None
        workloads: list[NamespaceWorkload | None] = []
        for item in self._listed(namespace, "RayCluster"):
            if item["metadata"]["name"] == name:
                cluster = item
            workloads.append(workload_of("RayCluster", item))
        annotations = settled(_annotations(space), _annotations(cluster) if cluster else {})
        if not annotations:
            return None
        quota = self._quota(namespace)
        # A stack of an older version of berth made no quota, and gave no rights on other kinds.
        kinds = _BESIDE if quota else ()
        for kind in kinds:
            workloads += [workload_of(kind, item) for item in self._listed(namespace, kind)]
        return _BerthNamespace(
            namespace,
            name,
            space,
            lifetime_of(annotations),
            cluster,
            quota,
            list(filter(None, workloads)),
        )

    def _done_in(self, contents: _BerthNamespace) -> Object:
        """Suspend or wake a berth and what is beside it; return the report.

        Raises:
            ApiError: the API server refuses a change.
        """
        path = f"{_PATHS['RayCluster'].format(namespace=contents.namespace)}/{contents.name}"
        failed: list[str] = []
        for left in reversed(range(_ATTEMPTS)):
            decision, work = self._decision(contents)
            beside = self._decision_beside(contents, decision)
            change = _cluster_change(contents, decision, beside)
            if change and not left:
                # Whoever writes all the time keeps no berth awake.
                del change["metadata"]["resourceVersion"]
            try:
                if change and not self.dry:
                    self.api.ask(f"{path}?fieldManager={KEEPER}", "PATCH", change)
                break
            except ApiError as error:
                # Another writer changed the RayCluster, which may be awake or gone now.
                if error.status != http.client.CONFLICT or not left:
                    failed.append(str(error))
                    break
            contents = replace(contents, cluster=self.api.get(path))
        self._carry_out(contents, beside, failed)
        return _report_of(decision, work, beside)

    def _decision(self, contents: _BerthNamespace) -> tuple[Decision, Work | None]:
        """Return the decision about a RayCluster, and its work if it is awake."""
        if not contents.cluster:
            return Decision(), None
        state = contents.state
        work = None if state.suspended else self._used(contents.cluster)
        decision = decision_for(contents.lifetime, state, work, self.now)
        if decision.suspend:
            # Work that began since the first question would be lost.
            work = self._used(contents.cluster)
            decision = decision_for(contents.lifetime, state, work, self.now)
        return decision, work

    def _listed(self, namespace: str, kind: str) -> Iterator[Object]:
        """Yield the objects of a kind in a namespace, a few at a time, as each may be large."""
        return self.api.items(_PATHS[kind].format(namespace=namespace), SMALL_PAGE)

    def _quota(self, namespace: str) -> Object | None:
        """Return the quota that closes a namespace; None if there is none."""
        try:
            return self.api.get(QUOTA.format(namespace=namespace))
        except ApiError as error:
            if error.status not in (http.client.NOT_FOUND, http.client.FORBIDDEN):
                raise
            return None

    def _decision_beside(self, contents: _BerthNamespace, decision: Decision) -> NamespaceDecision:
        """Return the decision about everything in a namespace but the berth's RayCluster."""
        there = contents.cluster is not None
        berth = berth_in_pass(
            contents.name,
            contents.lifetime,
            contents.state,
            self.now,
            there=there,
            change=decision.suspend,
        )
        berth = replace(berth, closed=_is_closed(contents.quota))
        if not contents.quota or (
            len(contents.workloads) <= 1 and berth.awake and not berth.closed
        ):
            return NamespaceDecision()
        jobs = [workload_of("Job", item) for item in self._listed(contents.namespace, "Job")]
        workloads = [*contents.workloads, *filter(None, jobs)]
        pods: Iterable[Pod] = ()
        if not berth.awake:
            pods = filter(None, map(pod_of, self._listed(contents.namespace, "Pod")))
        return namespace_decision(berth, workloads, pods, self.now)

    def _carry_out(
        self, contents: _BerthNamespace, beside: NamespaceDecision, failed: list[str]
    ) -> None:
        """Suspend and wake what is beside the RayCluster, and close or open the namespace.

        Raises:
            ApiError: something failed, here or before; what else fails keeps nothing from the rest.
        """
        changes = [] if self.dry else list(_changes_beside(contents, beside))
        for path, change in changes:
            try:
                self.api.ask(f"{path}?fieldManager={KEEPER}", "PATCH", change)
            except ApiError as error:
                # What is gone needs no suspension.
                if error.status != http.client.NOT_FOUND:
                    failed.append(str(error))
        if failed:
            raise ApiError("; ".join(failed))

    def _used(self, cluster: Object) -> Work:
        """Return the work on an awake RayCluster, and an open login."""
        work = self._work(cluster)
        login = open_login(_annotations(cluster), self.now)
        return replace(work, running=(*work.running, login)) if login else work

    def _work(self, cluster: Object) -> Work:
        """Return the work on an awake RayCluster."""
        namespace = cluster["metadata"]["namespace"]
        name = cluster["metadata"]["name"]
        of_head = f"ray.io/cluster={name},ray.io/node-type=head"
        pods = self.api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=of_head)
        heads = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        if not heads or heads[0]["status"].get("phase") == "Pending":
            return Work(waiting=True)
        head = heads[0]
        try:
            token = "" if _without_token(cluster) else self._token(namespace, name)
            place = {
                "ip": _address(head["status"].get("podIP", "")),
                "namespace": namespace,
                "name": name,
            }
            head_server = JsonServer(
                self.dashboard.format(**place),
                token,
                most_bytes=MOST_BYTES,
                until=time.monotonic() + SECONDS,
            )
            return work_of(head_server, _began(head))
        except ApiError as error:
            return Work(unknown=str(error))

    def _token(self, namespace: str, name: str) -> str:
        try:
            secret = self.api.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
            return base64.b64decode(secret["data"]["auth_token"]).decode()
        except (KeyError, ValueError):
            raise ApiError(f"Secret {namespace}/{name} has no token") from None


def work_of(dashboard: JsonServer, began: datetime | None) -> Work:
    """Return the work on a RayCluster, as its Ray reports it, which started at `began`.

    Raises:
        ApiError: the dashboard does not answer.
    """
    try:
        answer = dashboard.ask("/api/jobs/")
        jobs = [str(job) for job in running_jobs(answer)]
        times = [job["end_time"] for job in json.loads(answer) if job.get("end_time")]
        ended = [datetime.fromtimestamp(milliseconds / 1000, UTC) for milliseconds in times]
        actors = _actors(dashboard)
    except ApiError:
        raise
    except Exception as error:  # noqa: BLE001 - a head answers what its tenant likes
        raise ApiError(f"{dashboard.url} answers nonsense: {str(error)[:_LONGEST_ERROR]}") from None
    last = [*([began] if began else []), *ended]
    return Work(running=(*jobs, *actors), last=max(last, default=None))


def _actors(dashboard: JsonServer) -> list[str]:
    """Return actors, such as those of Ray Serve, that outlive the job that created them."""
    actors: list[str] = []
    for actor in dashboard.get(_ACTORS)["data"]["result"]["result"]:
        namespace = actor.get("ray_namespace")
        if not str(namespace or "").startswith("_") and namespace not in _HELPERS:
            actors.append(f"actor {actor.get('name') or actor['class_name']}")
    return sorted(actors)


def _report_of(decision: Decision, work: Work | None, beside: NamespaceDecision) -> Object:
    """Return what the keeper did in a namespace, for its log."""
    suspended = [f"suspended {kind} {name}" for kind, name in beside.suspend]
    woken = [f"woken {kind} {name}" for kind, name in beside.wake]
    return {
        "did": {True: "suspended", False: "woken", None: ""}[decision.suspend],
        "suspendedBy": decision.suspended_by,
        "heldUp": decision.held_up,
        "running": list(work.running) if work else [],
        "unknown": work.unknown if work else "",
        "beside": [*suspended, *woken],
        "closed": beside.note,
    }


def _notes(state: BerthState, beside: NamespaceDecision) -> dict[str, str | None]:
    """Return the annotations about more than the decision; None for one to remove."""
    return {
        WOKEN_AT: timestamp(state.woken) if state.woken else None,
        BEGUN: timestamp(state.begin) if state.begin != state.created else None,
        CLOSED: beside.note or None,
    }


def _changes_beside(
    contents: _BerthNamespace, beside: NamespaceDecision
) -> Iterator[tuple[str, Object]]:
    """Yield the merge patches of workloads and of the quota, each with its path."""
    for key in beside.suspend:
        yield _suspension(contents.namespace, key, suspend=True)
    for key in beside.wake:
        yield _suspension(contents.namespace, key, suspend=False)
    change = _quota_change(contents, contents.quota, beside) if contents.quota else None
    if change:
        yield QUOTA.format(namespace=contents.namespace), change


def _suspension(namespace: str, key: Key, *, suspend: bool) -> tuple[str, Object]:
    """Return the path of a workload, and the merge patch that suspends or wakes it."""
    kind, name = key
    spec: Object = {"suspend": suspend}
    if kind == "RayService":
        spec = {"rayClusterConfig": spec}
    return f"{_PATHS[kind].format(namespace=namespace)}/{name}", {"spec": spec}


def _quota_change(contents: _BerthNamespace, quota: Object, beside: NamespaceDecision) -> Object:
    """Return the merge patch of the quota that closes a namespace; empty if nothing changes."""
    change: Object = {}
    if beside.closed != _is_closed(quota):
        change["spec"] = {"hard": {"pods": "0" if beside.closed else None}}
    if contents.cluster and BEGUN not in _annotations(quota):
        change["metadata"] = {"annotations": {BEGUN: timestamp(contents.state.begin)}}
    return change


def _is_closed(quota: Object | None) -> bool:
    return bool(quota and ((quota.get("spec") or {}).get("hard") or {}).get("pods") == "0")


def _cluster_change(
    contents: _BerthNamespace, decision: Decision, beside: NamespaceDecision
) -> Object:
    """Return the merge patch of the berth's RayCluster; empty if nothing changes."""
    if not contents.cluster:
        return {}
    written = {**decision.notes(), **_notes(contents.state, beside)}
    present = _annotations(contents.cluster)
    notes = {key: text for key, text in written.items() if present.get(key) != text}
    change: Object = {"metadata": {"annotations": notes}} if notes else {}
    if decision.suspend is not None:
        change["spec"] = {"suspend": decision.suspend}
    if change:
        # The API server refuses the patch of a RayCluster that has changed since.
        version = contents.cluster["metadata"]["resourceVersion"]
        change.setdefault("metadata", {})["resourceVersion"] = version
    return change


def _annotations(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("annotations") or {}


def _without_token(cluster: Object) -> bool:
    return ((cluster.get("spec") or {}).get("authOptions") or {}).get("mode") == "disabled"


def _began(head: Object) -> datetime | None:
    """Return when the head's Ray started; a new head knows nothing of earlier work."""
    states = [status.get("state") or {} for status in head["status"].get("containerStatuses") or []]
    times = [state["running"]["startedAt"] for state in states if "running" in state]
    return max(map(datetime.fromisoformat, times), default=None)


def _address(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def main(arguments: list[str] | None = None) -> int:
    """Run one pass; return 1 if a berth failed."""
    parser = argparse.ArgumentParser(
        prog="keeper", description="Suspend and wake berths by their lifecycle, in one pass."
    )
    parser.add_argument(
        "--selector", required=True, help="label selector of namespaces: berth/environment=NAME"
    )
    parser.add_argument(
        "--dashboard",
        default=DASHBOARD,
        help="heads' dashboards, of {ip}, {namespace}, {name}; %(default)s",
    )
    parser.add_argument(
        "--at", type=datetime.fromisoformat, help="time of the pass, such as 2026-01-31T22:00:00Z"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing, and report what would be done"
    )
    given = parser.parse_args(arguments)
    config = os.environ.get("KUBECONFIG")
    try:
        api = server_of_kubeconfig(Path(config)) if config else server_of_pod()
        keeper = KeeperPass(api, given.at or datetime.now(UTC), given.dashboard, given.dry_run)
        failed = False
        for report in keeper.reports(given.selector):
            # The log of a pass that is ended before its end has the outcomes until then.
            print(json.dumps(report), flush=True)  # noqa: T201 - the program's output
            failed = failed or "error" in report
    except ApiError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
