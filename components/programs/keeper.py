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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from berth.components.programs.beside import (
    Berth,
    Thing,
    Verdict,
    berth_of,
    judge,
    pod_of,
    thing_of,
)
from berth.components.programs.decision import (
    BEGUN,
    CLOSED,
    KEEPER,
    WOKEN_AT,
    Decision,
    Known,
    Work,
    decide,
    known_of,
    stamp,
)
from berth.components.programs.jobs import running_jobs
from berth.components.programs.lifetimes import Lifetime, lifetime_of, settled
from berth.components.programs.logins import open_login
from berth.components.programs.servers import (
    MOST_BYTES,
    SECONDS,
    SMALL_PAGE,
    ApiError,
    Server,
    by_kubeconfig,
    in_cluster,
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
class _Found:
    """What is in a berth's namespace."""

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
    things: Sequence[Thing]
    """RayClusters, RayJobs and RayServices."""

    @property
    def known(self) -> Known:
        """State of the berth; without a RayCluster it is as old as its namespace."""
        known = known_of(self.cluster or {"metadata": self.space["metadata"]})
        noted = _annotations(self.quota).get(BEGUN) if self.quota else None
        return replace(known, begun=datetime.fromisoformat(noted)) if noted else known


@dataclass(frozen=True)
class Keeper:
    """Pass over all berths."""

    api: Server
    """The API server."""
    now: datetime
    """Time of the pass."""
    dashboard: str = DASHBOARD
    """Address of heads' dashboards: a format of {ip}, {namespace} and {name}."""
    dry: bool = False
    """Whether to change nothing."""

    def look(self, selector: str) -> Iterator[Object]:
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
            for report in as_completed([pool.submit(self._report, space) for space in spaces]):
                if found := report.result():
                    yield found

    def _report(self, space: Object) -> Object | None:
        """Return the report of a namespace; None for a berth without a lifecycle."""
        namespace = space["metadata"]["name"]
        name = namespace.removeprefix(PREFIX)
        report: Object = {"rayCluster": f"{namespace}/{name}"}
        try:
            found = self._found(space, name)
            return report | self._decided(found) if found else None
        except Exception as error:  # noqa: BLE001 - whatever a berth does, the others have their pass
            return report | {"error": (f"{error}" or repr(error))[:_LONGEST_ERROR]}

    def _found(self, space: Object, name: str) -> _Found | None:
        """Return what is in a namespace; None without a lifecycle."""
        namespace = space["metadata"]["name"]
        cluster, things = None, []
        for item in self._listed(namespace, "RayCluster"):
            if item["metadata"]["name"] == name:
                cluster = item
            things.append(thing_of("RayCluster", item))
        facts = settled(_annotations(space), _annotations(cluster) if cluster else {})
        if not facts:
            return None
        # A stack of an older version of berth made no quota, and gave no rights on other kinds.
        if quota := self._quota(namespace):
            things += [
                thing_of(kind, item) for kind in _BESIDE for item in self._listed(namespace, kind)
            ]
        return _Found(
            namespace, name, space, lifetime_of(facts), cluster, quota, list(filter(None, things))
        )

    def _decided(self, found: _Found) -> Object:
        path = f"{_PATHS['RayCluster'].format(namespace=found.namespace)}/{found.name}"
        failed: list[str] = []
        for left in reversed(range(_ATTEMPTS)):
            cluster, known = found.cluster, found.known
            decision, work = self._decision(found, known)
            there = cluster is not None
            berth = berth_of(
                found.name, found.lifetime, known, self.now, there=there, change=decision.suspend
            )
            verdict = self._judged(found, replace(berth, closed=_is_closed(found.quota)))
            change = _change(cluster, decision, _notes(known, verdict)) if cluster else {}
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
            found = replace(found, cluster=self.api.get(path))
        self._carry_out(found, verdict, failed)
        return {
            "did": {True: "suspended", False: "woken", None: ""}[decision.suspend],
            "suspendedBy": decision.suspended_by,
            "heldUp": decision.held_up,
            "running": list(work.running) if work else [],
            "unknown": work.unknown if work else "",
            "beside": [f"suspended {kind} {name}" for kind, name in verdict.suspend]
            + [f"woken {kind} {name}" for kind, name in verdict.wake],
            "closed": verdict.note,
        }

    def _decision(self, found: _Found, known: Known) -> tuple[Decision, Work | None]:
        """Return the decision about a RayCluster, and its work if it is awake."""
        if not found.cluster:
            return Decision(), None
        work = None if known.suspended else self._used(found.cluster)
        decision = decide(found.lifetime, known, work, self.now)
        if decision.suspend:
            # Work that began since the first question would be lost.
            work = self._used(found.cluster)
            decision = decide(found.lifetime, known, work, self.now)
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

    def _judged(self, found: _Found, berth: Berth) -> Verdict:
        """Return the decision about everything in a namespace but the berth's RayCluster."""
        if not found.quota or (len(found.things) <= 1 and berth.awake and not berth.closed):
            return Verdict()
        jobs = filter(
            None, (thing_of("Job", item) for item in self._listed(found.namespace, "Job"))
        )
        pods = (
            () if berth.awake else filter(None, map(pod_of, self._listed(found.namespace, "Pod")))
        )
        return judge(berth, [*found.things, *jobs], pods, self.now)

    def _carry_out(self, found: _Found, verdict: Verdict, failed: list[str]) -> None:
        """Suspend and wake what is beside the RayCluster, and close or open the namespace.

        Raises:
            ApiError: something failed, here or before; what else fails keeps nothing from the rest.
        """
        changes: list[tuple[str, Object]] = []
        for keys, suspend in ((verdict.suspend, True), (verdict.wake, False)):
            for kind, name in keys:
                spec: Object = {"suspend": suspend}
                change = {"spec": {"rayClusterConfig": spec} if kind == "RayService" else spec}
                changes.append((f"{_PATHS[kind].format(namespace=found.namespace)}/{name}", change))
        if found.quota and (change := _quota_change(found, found.quota, verdict)):
            changes.append((QUOTA.format(namespace=found.namespace), change))
        for path, change in changes if not self.dry else []:
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
        work, login = self._work(cluster), open_login(_annotations(cluster), self.now)
        return replace(work, running=(*work.running, login)) if login else work

    def _work(self, cluster: Object) -> Work:
        """Return the work on an awake RayCluster."""
        namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
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
            head_server = Server(
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


def work_of(dashboard: Server, began: datetime | None) -> Work:
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


def _actors(dashboard: Server) -> list[str]:
    """Return actors, such as those of Ray Serve, that outlive the job that created them."""
    found = dashboard.get(_ACTORS)["data"]["result"]["result"]
    ours = [
        actor
        for actor in found
        if not str(actor.get("ray_namespace") or "").startswith("_")
        and actor.get("ray_namespace") not in _HELPERS
    ]
    return sorted(f"actor {actor.get('name') or actor['class_name']}" for actor in ours)


def _notes(known: Known, verdict: Verdict) -> dict[str, str | None]:
    """Return the annotations about more than the decision; None for one to remove."""
    return {
        WOKEN_AT: stamp(known.woken) if known.woken else None,
        BEGUN: stamp(known.begin) if known.begin != known.created else None,
        CLOSED: verdict.note or None,
    }


def _quota_change(found: _Found, quota: Object, verdict: Verdict) -> Object:
    """Return the merge patch of the quota that closes a namespace; empty if nothing changes."""
    change: Object = {}
    if verdict.closed != _is_closed(quota):
        change["spec"] = {"hard": {"pods": "0" if verdict.closed else None}}
    if found.cluster and BEGUN not in _annotations(quota):
        change["metadata"] = {"annotations": {BEGUN: stamp(found.known.begin)}}
    return change


def _is_closed(quota: Object | None) -> bool:
    return bool(quota and ((quota.get("spec") or {}).get("hard") or {}).get("pods") == "0")


def _change(cluster: Object, decision: Decision, more: Mapping[str, str | None]) -> Object:
    """Return the merge patch of a decision; empty if nothing changes."""
    written = {**decision.notes(), **more}
    notes = {key: text for key, text in written.items() if _annotations(cluster).get(key) != text}
    change: Object = {"metadata": {"annotations": notes}} if notes else {}
    if decision.suspend is not None:
        change["spec"] = {"suspend": decision.suspend}
    if change:
        # The API server refuses the patch of a RayCluster that has changed since.
        change.setdefault("metadata", {})["resourceVersion"] = cluster["metadata"][
            "resourceVersion"
        ]
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
        api = by_kubeconfig(Path(config)) if config else in_cluster()
        keeper = Keeper(api, given.at or datetime.now(UTC), given.dashboard, given.dry_run)
        failed = False
        for report in keeper.look(given.selector):
            # The log of a pass that is ended before its end has the outcomes until then.
            print(json.dumps(report), flush=True)  # noqa: T201 - the program's output
            failed = failed or "error" in report
    except ApiError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
