"""Reading from a cluster's API server, as plain objects: what waiting and `berth status` need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from kubernetes import client, config
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

Object = dict[str, Any]
"""A Kubernetes object as the API server gives it."""

RAY_CLUSTERS = "/apis/ray.io/v1/rayclusters"
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
EVENTS = "/api/v1/events"

_TIMEOUT_SECONDS = 30
_CONNECT_RETRIES = 2
_NOT_FOUND = 404
_FIRST_ERROR = 400


class ClusterError(Exception):
    """The API server does not answer, or refuses; the text says which and why."""


class ClusterApi:
    """A connection to one cluster. It only reads."""

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
        response = self._get(path, query, _TIMEOUT_SECONDS)
        if response is None:
            return [], ""
        answer = json.loads(response.read())
        return answer["items"], answer["metadata"].get("resourceVersion", "")

    def watch(self, path: str, version: str, seconds: int, **query: str) -> Iterator[Object]:
        """The objects of a collection that appear or change, until `seconds` have passed.

        Raises:
            ClusterError: the server can't be asked, or forgot that version.
        """
        query |= {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        response = self._get(path, query, seconds + _TIMEOUT_SECONDS)
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

    def _get(self, path: str, query: dict[str, str], timeout: int) -> Any:
        """The open response; None where there is no such collection."""
        request = self._api.param_serialize(
            "GET",
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json"},
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
