"""Program of the keeper: one pass over all berths with a lifecycle, which suspends or wakes each.

The program runs in a pod with the environment's Ray image (lifecycle/manifests.py), or anywhere
with a kubeconfig. It needs only Python, and its state is in annotations of the RayClusters.
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
"""Address of a head's dashboard, from the pod's address."""

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 15
_MOST_BYTES = 64 * 2**20
_AT_ONCE = 16
_ATTEMPTS = 3
_CONFLICT, _NOT_FOUND = 409, 404

# Idle actors that Ray's libraries leave behind (ray 2.60: ray/data, ray/train); their other actors
# are in namespaces that begin with "_".
_HELPERS = {"AutoscalingCoordinator", "DataUsageCollectionActor"}
_ACTORS = "/api/v0/actors?limit=1000&filter_keys=state&filter_predicates=!%3D&filter_values=DEAD"


class ApiError(Exception):
    """Server that does not answer or refuses; the message names the server and the reason."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refusal of redirects: a head must not send the keeper to another server."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


@dataclass(frozen=True)
class Server:
    """Server that answers JSON over HTTP.

    Attributes:
        url: address of the server.
        token: token of every request; "" for none.
        tls: trust and client certificate; None for the system's.
    """

    url: str
    token: str = ""
    tls: ssl.SSLContext | None = None

    def ask(self, path: str, method: str = "GET", body: Object | None = None) -> str:
        """Return the text of an answer.

        Raises:
            ApiError: the server does not answer, or refuses.
        """
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - our own URL
        handlers = [urllib.request.ProxyHandler({}), _NoRedirects(), urllib.request.HTTPSHandler(context=self.tls)]
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=_SECONDS) as response:
                return str(response.read(_MOST_BYTES).decode())
        except urllib.error.HTTPError as error:
            answer = error.read(_MOST_BYTES).decode(errors="replace")
            raise ApiError(f"{self.url} answers {error.code}: {_message(answer)}", error.code) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ApiError(f"{self.url} does not answer: {error}") from None

    def get(self, path: str) -> Object:
        """Return the object of an answer.

        Raises:
            ApiError: the server does not answer, refuses, or answers something else.
        """
        try:
            answer = json.loads(self.ask(path))
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ApiError(f"{self.url}{path.partition('?')[0]} does not answer an object")
        return answer


def _message(answer: str) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.strip()[:200]


def in_cluster() -> Server:
    """Return the API server of the pod that this program runs in.

    Raises:
        ApiError: the program does not run in a pod with a service account.
    """
    try:
        token = (_ACCOUNT / "token").read_text().strip()
        tls = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT_HTTPS"]
    except (OSError, KeyError) as error:
        raise ApiError(f"neither a pod with a service account nor KUBECONFIG: {error}") from None
    return Server(f"https://{f'[{host}]' if ':' in host else host}:{port}", token, tls)


def by_kubeconfig(path: Path) -> Server:
    """Return the API server of a kubeconfig's current context, without credential plugins.

    Raises:
        ApiError: the file cannot be read, or has no such context.
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
        raise ApiError(f"{path} cannot be used: {error!r}") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # An image with Ray has a YAML library, which Ray needs.
        import yaml  # noqa: PLC0415

        return yaml.safe_load(text)


def _named(entries: Iterable[Object], name: str) -> Object:
    return next(entry for entry in entries if entry["name"] == name)


def _decoded(holder: Object, key: str) -> str:
    return base64.b64decode(holder.get(key, "")).decode()


def _file(user: Object, key: str, folder: Path) -> str | None:
    """Return the file of a certificate or key; data in the kubeconfig is written to a new file."""
    if text := _decoded(user, f"{key}-data"):
        path = folder / key
        path.touch(mode=0o600)
        path.write_text(text)
        return str(path)
    return user.get(key)


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

    def look(self, selector: str) -> list[Object]:
        """Suspend and wake berths; return a report on each, with an `error` for a failure.

        Args:
            selector: label selector of the RayClusters.

        Raises:
            ApiError: the API server does not answer.
        """
        query = urllib.parse.urlencode({"labelSelector": selector})
        clusters = self.api.get(f"/apis/ray.io/v1/rayclusters?{query}")["items"]
        managed = [cluster for cluster in clusters if any(key in _annotations(cluster) for key in SETTINGS)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self._report, managed))

    def _report(self, cluster: Object) -> Object:
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

    def _work(self, cluster: Object) -> Work:
        """Return the work on an awake RayCluster."""
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
        ended = [job["end_time"] / 1000 for job in json.loads(answer) if job.get("end_time")]
        actors = _actors(dashboard)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ApiError(f"{dashboard.url}: {error}") from None
    last = [*([began] if began else []), *(datetime.fromtimestamp(end, UTC) for end in ended)]
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
    parser.add_argument("--selector", required=True, help="label selector of the RayClusters: berth/environment=NAME")
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
        reports = keeper.look(given.selector)
    except ApiError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    for report in reports:
        sys.stdout.write(json.dumps(report) + "\n")
    return 1 if any("error" in report for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
