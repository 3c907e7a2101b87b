"""Program of the keeper: one pass over all berths with a lifecycle, which suspends or wakes each.

The program runs in a pod with the environment's Ray image (lifecycle/manifests.py), or anywhere
with a kubeconfig. It needs only Python, and its state is in annotations of the RayClusters.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from berth.components.programs.decision import KEEPER, Decision, Work, decide, known_of
from berth.components.programs.jobs import running_jobs
from berth.components.programs.lifetimes import SETTINGS, lifetime_of
from berth.components.programs.logins import open_login
from berth.components.programs.servers import MOST_BYTES, SECONDS, ApiError, Server, by_kubeconfig, in_cluster

Object = dict[str, Any]

DASHBOARD = "http://{ip}:8265"
"""Address of a head's dashboard, from the pod's address."""

_AT_ONCE = 16
_ATTEMPTS = 3
_CONFLICT = 409
_LONGEST_ERROR = 500

# Idle actors that Ray's libraries leave behind (ray 2.60: ray/data, ray/train); their other actors
# are in namespaces that begin with "_".
_HELPERS = {"AutoscalingCoordinator", "DataUsageCollectionActor"}
_ACTORS = "/api/v0/actors?limit=1000&filter_keys=state&filter_predicates=!%3D&filter_values=DEAD"


@dataclass(frozen=True)
class Keeper:
    """Pass over all berths.

    Attributes:
        api: the API server.
        now: time of the pass.
        dashboard: address of heads' dashboards: a format of {ip}, {namespace} and {name}.
        dry: change nothing.
    """

    api: Server
    now: datetime
    dashboard: str = DASHBOARD
    dry: bool = False

    def look(self, selector: str) -> Iterator[Object]:
        """Suspend and wake berths; yield the reports as they come, with an `error` for a failure.

        Args:
            selector: label selector of the berths' namespaces.

        Raises:
            ApiError: the API server does not answer.
        """
        # Users of a berth may change the labels of its RayCluster, and not those of its namespace.
        namespaces = {
            space["metadata"]["name"] for space in self.api.items("/api/v1/namespaces", labelSelector=selector)
        }
        clusters = [
            cluster
            for cluster in self.api.items("/apis/ray.io/v1/rayclusters")
            if cluster["metadata"]["namespace"] in namespaces
        ]
        managed = [cluster for cluster in clusters if any(key in _annotations(cluster) for key in SETTINGS)]
        # A pass that is ended before its end, for many heads that do not answer, leaves others out
        # each time.
        random.shuffle(managed)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for report in as_completed([pool.submit(self._report, cluster) for cluster in managed]):
                yield report.result()

    def _report(self, cluster: Object) -> Object:
        name = f"{cluster['metadata']['namespace']}/{cluster['metadata']['name']}"
        try:
            return {"rayCluster": name, **self._decided(cluster)}
        except Exception as error:  # noqa: BLE001 - whatever a berth does, the others have their pass
            return {"rayCluster": name, "error": (f"{error}" or repr(error))[:_LONGEST_ERROR]}

    def _decided(self, cluster: Object) -> Object:
        metadata = cluster["metadata"]
        path = f"/apis/ray.io/v1/namespaces/{metadata['namespace']}/rayclusters/{metadata['name']}"
        for attempt in range(_ATTEMPTS):
            known = known_of(cluster)
            lifetime = lifetime_of(_annotations(cluster))
            work = None if known.suspended else self._used(cluster)
            decision = decide(lifetime, known, work, self.now)
            if decision.suspend:
                # Work that began since the first question would be lost.
                work = self._used(cluster)
                decision = decide(lifetime, known, work, self.now)
            change = _change(cluster, decision)
            try:
                if change and not self.dry:
                    self.api.ask(f"{path}?fieldManager={KEEPER}", "PATCH", change)
                break
            except ApiError as error:
                # Another writer changed the RayCluster, which may be awake or gone now.
                if error.status != _CONFLICT or attempt == _ATTEMPTS - 1:
                    raise
            cluster = self.api.get(path)
        return {
            "did": {True: "suspended", False: "woken", None: ""}[decision.suspend],
            "suspendedBy": decision.suspended_by,
            "heldUp": decision.held_up,
            "running": list(work.running) if work else [],
            "unknown": work.unknown if work else "",
        }

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
            place = {"ip": _address(head["status"].get("podIP", "")), "namespace": namespace, "name": name}
            head_server = Server(
                self.dashboard.format(**place), token, most_bytes=MOST_BYTES, until=time.monotonic() + SECONDS
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
    """Return the work on a RayCluster, as its Ray reports it.

    Args:
        dashboard: dashboard of the head.
        began: start of the head's Ray.

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
        if not str(actor.get("ray_namespace") or "").startswith("_") and actor.get("ray_namespace") not in _HELPERS
    ]
    return sorted(f"actor {actor.get('name') or actor['class_name']}" for actor in ours)


def _change(cluster: Object, decision: Decision) -> Object:
    """Return the merge patch of a decision; empty if nothing changes."""
    notes = {key: text for key, text in decision.notes().items() if _annotations(cluster).get(key) != text}
    change: Object = {"metadata": {"annotations": notes}} if notes else {}
    if decision.suspend is not None:
        change["spec"] = {"suspend": decision.suspend}
    if change:
        # The API server refuses the patch of a RayCluster that has changed since.
        change.setdefault("metadata", {})["resourceVersion"] = cluster["metadata"]["resourceVersion"]
    return change


def _annotations(cluster: Object) -> Mapping[str, str]:
    return cluster["metadata"].get("annotations") or {}


def _without_token(cluster: Object) -> bool:
    return (cluster["spec"].get("authOptions") or {}).get("mode") == "disabled"


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
    parser.add_argument("--selector", required=True, help="label selector of namespaces: berth/environment=NAME")
    parser.add_argument(
        "--dashboard", default=DASHBOARD, help="heads' dashboards, of {ip}, {namespace}, {name}; %(default)s"
    )
    parser.add_argument("--at", type=datetime.fromisoformat, help="time of the pass, such as 2026-01-31T22:00:00Z")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, and report what would be done")
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
