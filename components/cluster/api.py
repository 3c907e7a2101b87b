"""Kubernetes client of berth and its lab: objects are dicts, every failure is a `ClusterError`.

The official client reads the kubeconfig, runs credential plugins and sends requests. It is imported
with the first connection. Paths are given as text, because the client's typed calls know no custom
resources and import a module for each API group.
"""

import builtins
import json
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

from berth.components.core.errors import BerthError
from berth.components.core.printable import load_json, log_line, printable

Object = dict[str, Any]
"""Kubernetes object as the API server writes it."""

RAY_CLUSTERS = "/apis/ray.io/v1/rayclusters"
RAY_JOBS = "/apis/ray.io/v1/rayjobs"
RAY_SERVICES = "/apis/ray.io/v1/rayservices"
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
EVENTS = "/api/v1/events"
NAMESPACES = "/api/v1/namespaces"
SECRETS = "/api/v1/secrets"
JOBS = "/apis/batch/v1/jobs"

JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"

# With its two retries a connection to an address where nothing answers ends within 10 s.
_CONNECT_SECONDS = 3.0
_READ_SECONDS = 60
_DAY_SECONDS = 24 * 60 * 60
_PAGE = 500
_STACK = "STACK"
"""Stands for the name of a stack that the connection does not know."""


class ClusterError(BerthError):
    """Failure to read or change a cluster."""

    passing: bool = False
    """Whether the same request may succeed later, without anybody's doing."""


class UnreachableError(ClusterError):
    """Missing answer: the connection is refused, breaks off or times out."""

    passing = True

    def __init__(self, server: str, error: Exception) -> None:
        # urllib3 wraps a refused connection three times.
        inner = str(getattr(error, "reason", None) or error)
        self.cause = inner.split(": ", 1)[-1] if "Connection" in inner else inner
        self.server = server
        super().__init__(f"the API server {server} does not answer: {self.cause}", _way_out(server))

    def of_stack(self, stack: str) -> ClusterError:
        """Return the error with the stack's name in its remedy."""
        return ClusterError(self.problem, self.remedy.replace(_STACK, stack))


def _way_out(server: str) -> str:
    """Return what to do about an API server that does not answer."""
    lab = (
        "start the lab: make lab; "
        if urlsplit(server).hostname in ("127.0.0.1", "localhost", "::1")
        else ""
    )
    return (
        f"{lab}if the cluster is gone for good, drop its objects from the state:"
        f" PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh -s {_STACK}"
    )


class RefusedError(ClusterError):
    """Answer that is not a success, with the server's message, reason and details."""

    def __init__(self, status: int, answer: Object) -> None:
        self.status = status
        self.message = str(
            answer.get("message") or f"the server answered with HTTP status {status}"
        )
        self.reason = str(answer.get("reason") or "")
        self.passing = (
            status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )
        self.details: Object = answer.get("details") or {}
        # A quota, an admission policy and a namespace in deletion answer 403 too; only the text
        # tells them from RBAC.
        if status == HTTPStatus.FORBIDDEN and "User " in self.message:
            super().__init__(
                f"you lack a right in the cluster; ask whoever administers it: {self.message}"
            )
        else:
            number = "" if status == HTTPStatus.CONFLICT else f"{status} "
            super().__init__(f"the API server refused: {number}{self.message}")


class NotFoundError(RefusedError):
    """Refusal because the object, its namespace or its kind is missing."""


class ConflictError(RefusedError):
    """Refusal because an object with this name exists, or the object that was meant is gone."""


_KINDS: dict[int, type[RefusedError]] = {
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
}


def unreachable(kubeconfig: str) -> UnreachableError | None:
    """Return the error of a cluster whose API server does not answer, within 10 s; None if it does.

    A refusal is an answer, and a kubeconfig that cannot be used is another error than this one.
    """
    try:
        ClusterApi(kubeconfig).text("/version", _CONNECT_SECONDS)
    except UnreachableError as error:
        return error
    except ClusterError:
        return None
    return None


def in_namespace(namespace: str, path: str) -> str:
    """Return a collection's path in a namespace: `/api/v1/pods` is `/api/v1/namespaces/x/pods`."""
    group, kind = path.rsplit("/", 1)
    return f"{group}/namespaces/{namespace}/{kind}"


class Reader(Protocol):
    """Source of a cluster's objects: the API server, or copies of its collections."""

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        """Return a collection's objects, and their version."""
        ...

    def get(self, path: str) -> Object | None:
        """Return one object; None where the path has nothing."""
        ...


class ClusterApi:
    """Connection to the cluster of a kubeconfig, given as text. Safe to use from many threads.

    Raises:
        ClusterError: the kubeconfig cannot be used, or its credential plugin fails; for every
            method, the server refuses (`RefusedError`) or does not answer (`UnreachableError`).
    """

    def __init__(self, kubeconfig: str) -> None:
        # Imported here: the official client takes a fifth of a second, and few commands connect at
        # once.
        from berth.components.cluster import connection  # noqa: PLC0415

        self._no_answer = connection.NO_ANSWER
        self._timeout = connection.timeout
        try:
            self._api, commands = connection.client_of(kubeconfig)
        except connection.UNUSABLE as error:
            raise ClusterError(
                f"the kubeconfig cannot be used: {error}",
                "write it again, or run the update of the environment",
            ) from None
        settings = self._api.configuration
        if commands and not (settings.api_key or settings.cert_file):
            raise ClusterError(
                f"the kubeconfig's credential plugin {commands[0]} gives no credentials",
                f"run {commands[0]} to see why, or install it",
            )

    @property
    def server(self) -> str:
        """Address of the API server."""
        return str(self._api.configuration.host)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        content_type: str = JSON,
    ) -> Object:
        """Send a request and return its JSON answer; the body of an `APPLY` may be YAML text."""
        return self._parsed(
            path, self._send(method, path, query or {}, body, content_type=content_type).data
        )

    def _parsed(self, path: str, text: bytes) -> Object:
        try:
            answer = load_json(text) if text else {}
        except ValueError:
            raise ClusterError(
                f"the API server {self.server} answers {path} with something other than JSON",
                "look at proxies between here and the cluster",
            ) from None
        return answer if isinstance(answer, dict) else {}

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        """Return a collection's objects, none of an unknown one, and the version to watch from.

        The objects come in pages, so that a large collection is never in memory as one text.
        """
        page = {**query, "limit": str(_PAGE)}
        objects: list[Object] = []
        with suppress(NotFoundError):
            while True:
                try:
                    answer = self.request("GET", path, query=page)
                except RefusedError as error:
                    if error.status != HTTPStatus.GONE or "continue" not in page:
                        raise
                    # The server has forgotten the version that the pages are of.
                    page = query
                    objects = []
                    continue
                objects += answer.get("items") or []
                metadata = answer.get("metadata") or {}
                if not metadata.get("continue"):
                    return objects, metadata.get("resourceVersion", "")
                page["continue"] = metadata["continue"]
        return [], ""

    def metadata(self, path: str, **query: str) -> builtins.list[Object]:
        """Return the metadata of a collection's objects, without what is large in them."""
        with suppress(NotFoundError):
            answer = self._parsed(path, self._send("GET", path, query, accept=METADATA).data)
            return builtins.list(answer.get("items") or [])
        return []

    def get(self, path: str) -> Object | None:
        """Return one object, or other JSON such as `/version`; None where the path has nothing."""
        with suppress(NotFoundError):
            return self.request("GET", path)
        return None

    def text(self, path: str, seconds: float = _READ_SECONDS, /, **query: str) -> str:
        """Return the text at a path, such as a pod's log; "" where the path has nothing."""
        with suppress(NotFoundError):
            text = self._send("GET", path, query, seconds=seconds).data.decode(errors="replace")
            return "\n".join(map(log_line, text.split("\n")))
        return ""

    def events(self, path: str, version: str, seconds: int, **query: str) -> Iterator[Object]:
        """Yield all events of a watch, such as deletions, until `seconds` have passed.

        Raises:
            RefusedError: the server has forgotten the version.
        """
        query |= {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        for line in self._lines(path, query, seconds + _READ_SECONDS):
            try:
                event = load_json(line)
            except ValueError:
                raise ClusterError(
                    f"the API server {self.server} breaks off a watch of {path}",
                    "run the command again",
                ) from None
            if event["type"] == "ERROR":
                raise RefusedError(int(event["object"].get("code") or 0), event["object"])
            yield event

    def lines(self, path: str, **query: str) -> Iterator[str]:
        """Yield the lines at a path as they come; a log that is followed has no end."""
        return map(log_line, self._lines(path, query, _DAY_SECONDS))

    def _lines(self, path: str, query: dict[str, str], seconds: int) -> Iterator[str]:
        try:
            stream = self._send("GET", path, query, seconds=seconds, stream=True)
        except NotFoundError:
            return
        rest = b""
        try:
            for chunk in stream.stream(amt=None):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
            if rest:
                yield rest.decode(errors="replace")
        except self._no_answer as error:
            raise UnreachableError(self.server, error) from None
        finally:
            stream.close()

    def create(self, path: str, manifest: Object) -> Object:
        """Create an object in a collection; return the object as the server completes it.

        Raises:
            ConflictError: an object with this name exists.
        """
        return self.request("POST", path, manifest)

    def patch(self, path: str, change: Object, manager: str) -> Object:
        """Change fields of an object by a merge patch, and own them as the manager."""
        return self.request("PATCH", path, change, {"fieldManager": manager}, MERGE_PATCH)

    def apply(self, path: str, manifest: str, manager: str) -> None:
        """Create or change an object by server-side apply, over the fields of other managers."""
        self.request("PATCH", path, manifest, {"fieldManager": manager, "force": "true"}, APPLY)

    def delete(self, path: str, uid: str) -> None:
        """Delete an object and its dependents; one that is gone, or has another uid, is left."""
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        with suppress(NotFoundError, ConflictError):
            self.request("DELETE", path, options)

    def _send(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        seconds: float = _READ_SECONDS,
        stream: bool = False,
    ) -> Any:
        """Return urllib3's response of a successful request, whose body a stream leaves unread.

        A request is sent again if its answer breaks off, except a POST, which could create a second
        object.
        """
        try:
            method, url, headers, body, _ = self._api.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params={"Accept": f"{accept}, */*", "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
            )
            # The API server reads patches to apply as YAML, which has no escaped surrogates.
            text = (
                body
                if body is None or isinstance(body, str)
                else json.dumps(body, ensure_ascii=False)
            )
            response = self._api.rest_client.pool_manager.request(
                method,
                url,
                body=text if text is None else text.encode(),
                headers=headers,
                timeout=self._timeout(_CONNECT_SECONDS, seconds),
                preload_content=not stream,
            )
            if response.status < HTTPStatus.BAD_REQUEST:
                return response
            text = response.data
        except self._no_answer as error:
            raise UnreachableError(self.server, error) from None
        answer: Any = None
        with suppress(ValueError):
            answer = load_json(text)
        if not isinstance(answer, dict):
            answer = {
                "message": printable(text.decode(errors="replace")).strip() or response.reason
            }
        raise _KINDS.get(response.status, RefusedError)(response.status, answer)
