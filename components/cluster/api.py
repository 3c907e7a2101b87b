"""A cluster's API server, as plain objects: what waiting, `berth status` and `berth verify` need.

What berth provisions is made by Pulumi. What is made here is a proof's and gone when that ends.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import yaml
from kubernetes import client, config
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from berth.components.core.errors import BerthError

Object = dict[str, Any]
"""A Kubernetes object as the API server gives it."""

RAY_CLUSTERS = "/apis/ray.io/v1/rayclusters"
RAY_JOBS = "/apis/ray.io/v1/rayjobs"
RAY_SERVICES = "/apis/ray.io/v1/rayservices"
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
EVENTS = "/api/v1/events"
NAMESPACES = "/api/v1/namespaces"
JOBS = "/apis/batch/v1/jobs"

_TIMEOUT_SECONDS = 30
_DAY_SECONDS = 24 * 60 * 60
_CONNECT_RETRIES = 2
_FORBIDDEN = 403
_NOT_FOUND = 404
_CONFLICT = 409
_FIRST_ERROR = 400


class ClusterError(BerthError):
    """The API server does not answer, or refuses; the text says which and why."""


class ConflictError(ClusterError):
    """Another object stands against it: one of that name is there, or the one that was meant is gone."""


def within(namespace: str, path: str) -> str:
    """A collection's path in one namespace: `/api/v1/pods` becomes `/api/v1/namespaces/x/pods`."""
    group, kind = path.rsplit("/", 1)
    return f"{group}/namespaces/{namespace}/{kind}"


class ClusterApi:
    """A connection to one cluster."""

    def __init__(self, kubeconfig: str) -> None:
        """Connect lazily.

        Args:
            kubeconfig: as text, YAML or JSON; exec credential plugins are run.

        Raises:
            ClusterError: it is no kubeconfig, or its credential plugin fails.
        """
        settings = client.Configuration()
        settings.retries = Retry(total=_CONNECT_RETRIES, backoff_factor=0.2)
        try:
            self._api = config.new_client_from_config_dict(yaml.safe_load(kubeconfig), client_configuration=settings)
        except (config.ConfigException, yaml.YAMLError, OSError) as error:
            raise ClusterError(f"the kubeconfig cannot be used: {error}") from None

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        """The objects of a collection, and the resource version to watch from.

        Args:
            path: for example `/api/v1/nodes`; a collection that the server doesn't know is empty.
            query: parameters such as labelSelector.

        Raises:
            ClusterError: the server can't be asked.
        """
        response = self._call("GET", path, query)
        if response is None:
            return [], ""
        answer = json.loads(response.read())
        return answer["items"], answer["metadata"].get("resourceVersion", "")

    def get(self, path: str) -> Object | None:
        """One object; None where there is no such thing.

        Args:
            path: the object's, or anything else that answers JSON, such as `/version`.

        Raises:
            ClusterError: the server can't be asked.
        """
        response = self._call("GET", path, {})
        return None if response is None else dict(json.loads(response.read()))

    def watch(self, path: str, version: str, seconds: int, **query: str) -> Iterator[Object]:
        """The objects of a collection that appear or change, until `seconds` have passed.

        Raises:
            ClusterError: the server can't be asked, or forgot that version.
        """
        query |= {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        response = self._call("GET", path, query, timeout=seconds + _TIMEOUT_SECONDS)
        if response is None:
            return
        stream = response.response
        try:
            rest = b""
            for chunk in stream.stream(amt=None):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise ClusterError(event["object"].get("message", "the watch failed"))
                    if event["type"] in ("ADDED", "MODIFIED"):
                        yield event["object"]
        except HTTPError as error:
            raise ClusterError(f"the API server broke off: {error}") from None
        finally:
            stream.close()

    def text(self, path: str, **query: str) -> str:
        """What a path answers as text, such as a pod's log; "" where there is no such thing.

        Raises:
            ClusterError: the server can't be asked, or has none yet.
        """
        response = self._call("GET", path, query)
        return "" if response is None else response.read().decode(errors="replace")

    def lines(self, path: str, **query: str) -> Iterator[str]:
        """The lines that a path answers, as they come: a log that is followed has no end of its own.

        Raises:
            ClusterError: the server can't be asked, or has none yet.
        """
        response = self._call("GET", path, query, timeout=_DAY_SECONDS)
        if response is None:
            return
        stream = response.response
        try:
            rest = b""
            for chunk in stream.stream(amt=None):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
            if rest:
                yield rest.decode(errors="replace")
        except HTTPError as error:
            raise ClusterError(f"the API server broke off: {error}") from None
        finally:
            stream.close()

    def create(self, path: str, manifest: Object) -> Object:
        """Make an object; what the server made of it.

        Args:
            path: its collection, in its namespace.
            manifest: the object.

        Raises:
            ConflictError: there is one of that name.
            ClusterError: the server can't be asked, or refuses it.
        """
        response = self._call("POST", path, {}, manifest)
        if response is None:
            raise ClusterError(f"the API server has no {path}: is its namespace gone?")
        return dict(json.loads(response.read()))

    def patch(self, path: str, change: Object, manager: str) -> Object:
        """Change fields of an object, and own them from then on; the object as it is after that.

        Args:
            path: the object's.
            change: a JSON merge patch.
            manager: the field manager that owns what the change sets.

        Raises:
            ClusterError: the server can't be asked, refuses, or there is no such object.
        """
        response = self._call("PATCH", path, {"fieldManager": manager}, change, content="application/merge-patch+json")
        if response is None:
            raise ClusterError(f"the API server has no {path}: is it gone?")
        return dict(json.loads(response.read()))

    def apply(self, path: str, manifest: str, manager: str) -> None:
        """Make an object as a manifest has it, by server-side apply; fields that others own are taken over.

        Args:
            path: the object's.
            manifest: the object, as YAML or JSON text.
            manager: the field manager that owns what the manifest sets.

        Raises:
            ClusterError: the server can't be asked, or refuses.
        """
        query = {"fieldManager": manager, "force": "true"}
        if self._call("PATCH", path, query, manifest, content="application/apply-patch+yaml") is None:
            raise ClusterError(f"the API server has no {path}")

    def delete(self, path: str, uid: str) -> None:
        """Have an object, and what belongs to it, removed; one that is gone, or has another uid, is left.

        Args:
            path: the object's.
            uid: of the very object that is meant, so that none that took its name since is hit.

        Raises:
            ClusterError: the server can't be asked, or refuses.
        """
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        with contextlib.suppress(ConflictError):
            self._call("DELETE", path, {}, options)

    def _call(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: Object | str | None = None,
        *,
        timeout: int = _TIMEOUT_SECONDS,
        content: str = "application/json",
    ) -> Any:
        """The open response; None where there is no such thing."""
        request = self._api.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json, */*", "Content-Type": content},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            response = self._api.call_api(*request, _request_timeout=timeout)
        except (HTTPError, OSError) as error:
            server = self._api.configuration.host
            raise ClusterError(f"the API server {server} does not answer: {_cause(error)}") from None
        if response.status == _NOT_FOUND:
            return None
        if response.status >= _FIRST_ERROR:
            message = _message(response.read()) or response.reason
            if response.status == _CONFLICT:
                raise ConflictError(f"the API server refused: {message}")
            # Quotas, admission and a namespace that is going away answer 403 too.
            if response.status == _FORBIDDEN and "User " in message:
                raise ClusterError(f"you lack a right in the cluster; ask whoever administers it: {message}")
            raise ClusterError(f"the API server refused: {response.status} {message}")
        return response


def _cause(error: Exception) -> str:
    """The innermost reason: urllib3 wraps a refused connection three times."""
    inner: BaseException = getattr(error, "reason", None) or error
    return str(inner).split(": ", 1)[-1] if "Connection" in str(inner) else str(inner)


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body).get("message", ""))
    except (json.JSONDecodeError, AttributeError):
        return ""
