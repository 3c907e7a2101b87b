"""The Kubernetes API as plain REST: discovery one group at a time, objects as dicts, watches that can be cancelled.

On urllib3, which the official client stands on too; its typed models would cost a third of a second at every start and
know nothing of custom resources.

Simulates nothing: a client of the real API server.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import urllib3

from berth.lab.plugins.kubernetes.kubeconfig import Access, Credentials, credentials
from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 60.0

# A watch is asked for anew this often: the longest that an interrupt waits for one.
_WATCH_SECONDS = 5

# More than this many requests at once open connections that are not kept.
_CONNECTIONS = 64

_NOT_FOUND, _CONFLICT, _GONE, _UNAUTHORIZED, _FORBIDDEN, _TOO_MANY = 404, 409, 410, 401, 403, 429
_ERRORS_FROM = 400

# Brief refusals of a server that starts or is overloaded are tried again.
_BUSY = frozenset({_TOO_MANY, 503})
_BUSY_ATTEMPTS = 4


class ApiError(ProviderError):
    """An answer of the API server that is no success.

    Attributes:
        code: the HTTP status.
        reason: the server's word for it, such as `AlreadyExists`.
        details: kind, name and causes, as the server gives them.
    """

    def __init__(self, code: int, status: dict[str, Any]) -> None:
        super().__init__(str(status.get("message") or f"the server answered with HTTP status {code}"))
        self.code = code
        self.reason = str(status.get("reason") or "")
        self.details: dict[str, Any] = status.get("details") or {}

    @property
    def not_found(self) -> bool:
        """The object, its namespace or its type is not there."""
        return self.code == _NOT_FOUND

    @property
    def already_exists(self) -> bool:
        """An object of this name is there."""
        return self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """Another manager owns a field, or the object has changed meanwhile."""
        return self.code == _CONFLICT and not self.already_exists

    @property
    def forbidden(self) -> bool:
        """The user may not do this."""
        return self.code == _FORBIDDEN

    @property
    def namespace_missing(self) -> bool:
        """It is the namespace that is not there."""
        return self.not_found and self.details.get("kind") == "namespaces"


class NoMatchError(ProviderError):
    """The server has no such kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')


class UnreachableError(ProviderError):
    """Nobody answers at the server's address."""

    def __init__(self, why: str) -> None:
        super().__init__(f"configured Kubernetes cluster is unreachable: {why}")


@dataclass(frozen=True)
class Resource:
    """Where the objects of one kind are found.

    Attributes:
        root: path of the group and version, such as `/apis/ray.io/v1`.
        plural: such as `rayclusters`.
        namespaced: whether its objects live in namespaces.
    """

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The path of an object, or of all objects of the kind in a namespace."""
        place = f"/namespaces/{quote(namespace or 'default', safe='')}" if self.namespaced else ""
        return f"{self.root}{place}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")


class Cluster:
    """One API server. Safe to use from many threads."""

    def __init__(self, access: Access, cancelled: threading.Event) -> None:
        self.access = access
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._credentials: Credentials | None = None
        self._pool: urllib3.PoolManager | None = None
        self._groups: dict[str, dict[str, Resource]] = {}
        self._group_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def resource(self, api_version: str, kind: str) -> Resource:
        """Where objects of a kind are found.

        Raises:
            NoMatchError: the server does not have the kind (asked again each time: it may come).
        """
        known = self._groups.get(api_version, {}).get(kind)
        if known:
            return known
        with self._lock:
            group_lock = self._group_locks[api_version]
        with group_lock:
            # A hundred objects of one kind ask at once; the first asks the server.
            known = self._groups.get(api_version, {}).get(kind)
            if known is None:
                self._groups[api_version] = self._discover(api_version)
                known = self._groups[api_version].get(kind)
        if known is None:
            raise NoMatchError(api_version, kind)
        return known

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """An object as it is."""
        return self.request("GET", self.resource(api_version, kind).path(namespace, name))

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """One request and its JSON answer.

        Raises:
            ApiError: the server refuses.
            UnreachableError: it does not answer.
        """
        for attempt in range(_BUSY_ATTEMPTS):
            response = self._send(method, path, body, query, content_type, preload=True)
            if response.status not in _BUSY or attempt == _BUSY_ATTEMPTS - 1 or self._cancelled.wait(2.0**attempt / 2):
                break
        return _answer(response)

    def watch(self, path: str, name: str, version: str, deadline: float) -> Iterator[dict[str, Any]]:
        """The object's later states, until the deadline (`time.monotonic()`) or an interrupt.

        A deleted object is given once more with `deletedByWatch`; a gap in the server's history ends the iteration
        early, and the caller reads the object anew.
        """
        while not self._cancelled.is_set() and time.monotonic() < deadline:
            seconds = max(1, min(_WATCH_SECONDS, int(deadline - time.monotonic())))
            query = {
                "watch": "true",
                "fieldSelector": f"metadata.name={name}",
                "resourceVersion": version,
                "timeoutSeconds": str(seconds),
            }
            response = self._send("GET", path, None, query, "application/json", preload=False)
            finished = False
            try:
                if response.status >= _ERRORS_FROM:
                    if response.status == _GONE:
                        return
                    _answer(response)
                for line in _lines(response):
                    event = json.loads(line)
                    item = event.get("object") or {}
                    if event.get("type") == "ERROR":
                        return
                    version = (item.get("metadata") or {}).get("resourceVersion", version)
                    yield {**item, "deletedByWatch": True} if event.get("type") == "DELETED" else item
                finished = True
            except urllib3.exceptions.HTTPError:
                # A connection that breaks in the middle of a watch says nothing about the object.
                return
            finally:
                if not finished:
                    # Nobody reads the rest, and the server would keep the connection busy with it.
                    response.close()
                response.release_conn()

    def _discover(self, api_version: str) -> dict[str, Resource]:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            found = self.request("GET", root).get("resources") or []
        except ApiError as error:
            if error.not_found:
                return {}
            raise
        return {
            item["kind"]: Resource(root, item["name"], bool(item["namespaced"]))
            for item in found
            if "/" not in item["name"]
        }

    def _send(
        self, method: str, path: str, body: Any, query: dict[str, str] | None, content_type: str, *, preload: bool
    ) -> urllib3.BaseHTTPResponse:
        url = self.access.server + path + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        pool, proof = self._connect()
        response = self._try(pool, proof, method, url, data, content_type, preload=preload)
        if response.status == _UNAUTHORIZED and self.access.user.get("exec"):
            # Credentials of a plugin run out; a new run of it gives new ones.
            response.drain_conn()
            pool, proof = self._connect(stale=proof)
            response = self._try(pool, proof, method, url, data, content_type, preload=preload)
        return response

    def _try(
        self,
        pool: urllib3.PoolManager,
        proof: Credentials,
        method: str,
        url: str,
        data: bytes | None,
        content_type: str,
        *,
        preload: bool,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": "pulumi-kubernetes-lab", **proof.headers}
        if data is not None:
            headers["Content-Type"] = content_type
        try:
            return pool.request(method, url, body=data, headers=headers, preload_content=preload, retries=_RETRIES)
        except urllib3.exceptions.HTTPError as error:
            cause = getattr(error, "reason", None) or error
            raise UnreachableError(f"{method} {self.access.server}: {_plain(cause)}") from error

    def _connect(self, stale: Credentials | None = None) -> tuple[urllib3.PoolManager, Credentials]:
        with self._lock:
            if self._pool is None or self._credentials is None or self._credentials is stale:
                self._credentials = credentials(self.access)
                self._pool = urllib3.PoolManager(
                    maxsize=_CONNECTIONS,
                    ssl_context=self._credentials.tls,
                    timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS),
                )
            return self._pool, self._credentials


# A kept connection that the server has closed is opened anew; nobody there is reported at once.
_RETRIES = urllib3.Retry(total=2, connect=0, read=0, other=0, redirect=0, status=0)


def _plain(cause: object) -> str:
    text = str(cause)
    # urllib3 puts its own object in front: `<…HTTPSConnection object at 0x…>: Failed to …`
    return text.split(": ", 1)[1] if text.startswith("<") and ": " in text else text.split("): ", 1)[-1]


def _answer(response: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    text = response.data
    try:
        answer = json.loads(text) if text else {}
    except ValueError:
        answer = {"message": text.decode(errors="replace").strip()}
    if response.status >= _ERRORS_FROM:
        raise ApiError(response.status, answer if isinstance(answer, dict) else {})
    return answer if isinstance(answer, dict) else {}


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())
