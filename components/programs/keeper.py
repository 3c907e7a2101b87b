"""The keeper's program: looks once at every berth that has a lifecycle, asks its Ray what runs, and suspends or wakes it.

It runs in a pod of the environment's Ray image (manifest.py), or anywhere with a kubeconfig. It needs Python alone, and keeps nothing: what
it remembers are annotations of the RayClusters.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import ssl
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from berth.components.programs.decision import KEEPER, Decision, Work, decide, known_of
from berth.components.programs.jobs import running_jobs
from berth.components.programs.lifetimes import SETTINGS, lifetime_of

Object = dict[str, Any]

DASHBOARD = "http://{ip}:8265"
"""Where a head's dashboard is, by its pod's address."""

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 15
_MOST_BYTES = 64 * 2**20
_AT_ONCE = 16
_ATTEMPTS = 3
_CONFLICT, _NOT_FOUND = 409, 404

# Actors that Ray's libraries leave behind, which do nothing for anybody (ray 2.60: ray/data, ray/train); others of theirs are in
# namespaces that begin with "_".
_HELPERS = {"AutoscalingCoordinator", "DataUsageCollectionActor"}
_ACTORS = "/api/v0/actors?limit=1000&filter_keys=state&filter_predicates=!%3D&filter_values=DEAD"


class ApiError(Exception):
    """Somebody can't be asked, or refuses; the text says who and why."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A head is not to send the keeper anywhere else."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


@dataclass(frozen=True)
class Server:
    """Somebody who answers JSON over HTTP.

    Attributes:
        url: where.
        token: sent with every request; "" for none.
        tls: how it is trusted, and what it is shown; None where that is the system's matter.
    """

    url: str
    token: str = ""
    tls: ssl.SSLContext | None = None

    def ask(self, path: str, method: str = "GET", body: Object | None = None) -> str:
        """Its answer.

        Raises:
            ApiError: it does not answer, or refuses.
        """
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - of our own making
        handlers = [urllib.request.ProxyHandler({}), _NoRedirects(), urllib.request.HTTPSHandler(context=self.tls)]
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=_SECONDS) as response:
                return str(response.read(_MOST_BYTES).decode())
        except urllib.error.HTTPError as error:
            said = error.read(_MOST_BYTES).decode(errors="replace")
            raise ApiError(f"{self.url} answers {error.code}: {_message(said)}", error.code) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ApiError(f"{self.url} does not answer: {error}") from None

    def get(self, path: str) -> Object:
        """The object that it answers.

        Raises:
            ApiError: it does not answer, refuses, or answers something else.
        """
        try:
            answer = json.loads(self.ask(path))
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ApiError(f"{self.url}{path.partition('?')[0]} answers no object")
        return answer


def _message(said: str) -> str:
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return said.strip()[:200]


def in_cluster() -> Server:
    """The API server of the pod that this runs in.

    Raises:
        ApiError: it runs in none.
    """
    try:
        token = (_ACCOUNT / "token").read_text().strip()
        tls = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT_HTTPS"]
    except (OSError, KeyError) as error:
        raise ApiError(f"neither a pod with a service account nor KUBECONFIG: {error}") from None
    return Server(f"https://{f'[{host}]' if ':' in host else host}:{port}", token, tls)


def by_kubeconfig(path: Path) -> Server:
    """The API server of a kubeconfig's current context; credential plugins are not run.

    Raises:
        ApiError: it can't be read, or has no such context.
    """
    try:
        config = _parsed(path.read_text(encoding="utf-8"))
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        tls = ssl.create_default_context(
            cafile=cluster.get("certificate-authority"),
            cadata=_decoded(cluster, "certificate-authority-data") or None,
        )
        with tempfile.TemporaryDirectory() as folder:
            if certificate := _file(user, "client-certificate", Path(folder)):
                tls.load_cert_chain(certificate, _file(user, "client-key", Path(folder)))
        return Server(cluster["server"].rstrip("/"), user.get("token", ""), tls)
    except (OSError, KeyError, TypeError, ValueError, StopIteration) as error:
        raise ApiError(f"{path} can't be used: {error!r}") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # JSON is YAML; where there is YAML, there is a library for it: Ray needs one.
        import yaml  # noqa: PLC0415

        return yaml.safe_load(text)


def _named(entries: Iterable[Object], name: str) -> Object:
    return next(entry for entry in entries if entry["name"] == name)


def _decoded(holder: Object, key: str) -> str:
    return base64.b64decode(holder.get(key, "")).decode()


def _file(user: Object, key: str, folder: Path) -> str | None:
    """The file of a certificate or key, made of what stands in the kubeconfig where it names none."""
    if text := _decoded(user, f"{key}-data"):
        path = folder / key
        path.touch(mode=0o600)
        path.write_text(text)
        return str(path)
    return user.get(key)


@dataclass(frozen=True)
class Keeper:
    """One look at all berths.

    Attributes:
        api: the API server.
        now: the moment that is gone by.
        dashboard: where heads' dashboards are: a format of {ip}, {namespace} and {name}.
        dry: nothing is changed.
    """

    api: Server
    now: datetime
    dashboard: str = DASHBOARD
    dry: bool = False

    def look(self, selector: str) -> list[Object]:
        """What was done about each berth that has a lifecycle, and why; those that could not be dealt with have an `error`.

        Args:
            selector: a label selector of their RayClusters.

        Raises:
            ApiError: the API server can't be asked.
        """
        query = urllib.parse.urlencode({"labelSelector": selector})
        clusters = self.api.get(f"/apis/ray.io/v1/rayclusters?{query}")["items"]
        kept = [each for each in clusters if any(key in _annotations(each) for key in SETTINGS)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self._see_to, kept))

    def _see_to(self, cluster: Object) -> Object:
        name = f"{cluster['metadata']['namespace']}/{cluster['metadata']['name']}"
        try:
            return {"rayCluster": name, **self._decided(cluster)}
        except (ApiError, ValueError, KeyError, TypeError) as error:
            return {"rayCluster": name, "error": f"{error}" or repr(error)}

    def _decided(self, cluster: Object) -> Object:
        metadata = cluster["metadata"]
        path = f"/apis/ray.io/v1/namespaces/{metadata['namespace']}/rayclusters/{metadata['name']}"
        for attempt in range(_ATTEMPTS):
            known = known_of(cluster)
            work = None if known.suspended else self._work(cluster)
            decision = decide(lifetime_of(_annotations(cluster)), known, work, self.now)
            change = _change(cluster, decision)
            try:
                if change and not self.dry:
                    self.api.ask(f"{path}?fieldManager={KEEPER}", "PATCH", change)
                break
            except ApiError as error:
                # Somebody changed it since: it may have been woken, or be gone.
                if error.status != _CONFLICT or attempt == _ATTEMPTS - 1:
                    raise
            cluster = self.api.get(path)
        did = {True: "suspended", False: "woken", None: ""}[decision.suspend]
        told = {"did": did, "suspendedBy": decision.suspended_by, "heldUp": decision.held_up}
        return {**told, "running": list(work.running) if work else [], "unknown": work.unknown if work else ""}

    def _work(self, cluster: Object) -> Work:
        """What runs on a RayCluster that is awake."""
        namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
        of_head = urllib.parse.urlencode({"labelSelector": f"ray.io/cluster={name},ray.io/node-type=head"})
        pods = self.api.get(f"/api/v1/namespaces/{namespace}/pods?{of_head}")["items"]
        heads = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        if not heads or heads[0]["status"].get("phase") == "Pending":
            return Work(waiting=True)
        head = heads[0]
        try:
            token = "" if _without_token(cluster) else self._token(namespace, name)
            place = {"ip": _address(head["status"].get("podIP", "")), "namespace": namespace, "name": name}
            return work_of(Server(self.dashboard.format(**place), token), _began(head))
        except ApiError as error:
            return Work(unknown=str(error))

    def _token(self, namespace: str, name: str) -> str:
        try:
            secret = self.api.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
            return base64.b64decode(secret["data"]["auth_token"]).decode()
        except (KeyError, ValueError):
            raise ApiError(f"Secret {namespace}/{name} has no token") from None


def work_of(dashboard: Server, began: datetime | None) -> Work:
    """What runs on a RayCluster, as its Ray says.

    Args:
        dashboard: its head's.
        began: when the head did.

    Raises:
        ApiError: it can't be asked.
    """
    try:
        answer = dashboard.ask("/api/jobs/")
        jobs = [str(job) for job in running_jobs(answer)]
        ended = [job["end_time"] / 1000 for job in json.loads(answer) if job.get("end_time")]
        actors = _actors(dashboard)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ApiError(f"{dashboard.url}: {error}") from None
    last = [*([began] if began else []), *(datetime.fromtimestamp(each, UTC) for each in ended)]
    return Work(running=(*jobs, *actors), last=max(last, default=None))


def _actors(dashboard: Server) -> list[str]:
    """Actors that outlive the job that made them, such as those of Ray Serve; those of jobs are in their jobs' names already."""
    found = dashboard.get(_ACTORS)["data"]["result"]["result"]
    ours = [
        each
        for each in found
        if not str(each.get("ray_namespace") or "").startswith("_") and each.get("ray_namespace") not in _HELPERS
    ]
    return sorted(f"actor {each.get('name') or each['class_name']}" for each in ours)


def _change(cluster: Object, decision: Decision) -> Object:
    """A merge patch of what is to be other than it is; empty where that is nothing."""
    notes = {key: text for key, text in decision.notes().items() if _annotations(cluster).get(key) != text}
    change: Object = {"metadata": {"annotations": notes}} if notes else {}
    if decision.suspend is not None:
        change["spec"] = {"suspend": decision.suspend}
    if change:
        # The API server refuses it where the RayCluster is not any more what was looked at.
        change.setdefault("metadata", {})["resourceVersion"] = cluster["metadata"]["resourceVersion"]
    return change


def _annotations(cluster: Object) -> Mapping[str, str]:
    return cluster["metadata"].get("annotations") or {}


def _without_token(cluster: Object) -> bool:
    return (cluster["spec"].get("authOptions") or {}).get("mode") == "disabled"


def _began(head: Object) -> datetime | None:
    """When the head's Ray did: what was before, a new head knows nothing of."""
    states = [each.get("state") or {} for each in head["status"].get("containerStatuses") or []]
    times = [state["running"]["startedAt"] for state in states if "running" in state]
    return max(map(datetime.fromisoformat, times), default=None)


def _address(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def main(arguments: list[str] | None = None) -> int:
    """Look once; 1 where a berth could not be dealt with."""
    parser = argparse.ArgumentParser(
        prog="keeper", description="Suspends and wakes berths by their lifecycle; looks once."
    )
    parser.add_argument("--selector", required=True, help="label selector of the RayClusters: berth/environment=NAME")
    parser.add_argument(
        "--dashboard", default=DASHBOARD, help="heads' dashboards, of {ip}, {namespace}, {name}; %(default)s"
    )
    parser.add_argument("--at", type=datetime.fromisoformat, help="go by this moment, such as 2026-01-31T22:00:00Z")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, and say what would be done")
    given = parser.parse_args(arguments)
    config = os.environ.get("KUBECONFIG")
    try:
        api = by_kubeconfig(Path(config)) if config else in_cluster()
        keeper = Keeper(api, given.at or datetime.now(UTC), given.dashboard, given.dry_run)
        outcomes = keeper.look(given.selector)
    except ApiError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    for outcome in outcomes:
        sys.stdout.write(json.dumps(outcome) + "\n")
    return 1 if any("error" in outcome for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
