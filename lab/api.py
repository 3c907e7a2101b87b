"""Requests of the controller to the lab's API server: objects by path, watches and events."""

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from berth.components.cluster.api import (
    APPLY,
    EVENTS,
    MERGE_PATCH,
    PODS,
    ClusterApi,
    ClusterError,
    ConflictError,
    NotFoundError,
    Object,
    in_namespace,
)

DEPLOYMENTS = "/apis/apps/v1/deployments"
DAEMONSETS = "/apis/apps/v1/daemonsets"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

STRATEGIC_PATCH = "application/strategic-merge-patch+json"

_MESSAGE_LENGTH = 1024
_WATCH_SECONDS = 600
_AGAIN_SECONDS = 0.5

_log = logging.getLogger("berth.lab.devices")


def now() -> str:
    """Return the time as the API server writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def path_of(pod: Object) -> str:
    """Return the path of a pod."""
    return f"{in_namespace(pod['metadata']['namespace'], PODS)}/{pod['metadata']['name']}"


class Api:
    """The API server of one lab.

    Every method but `follow` raises a ClusterError when the server does not answer or refuses. A
    method that writes returns False when the object is gone or somebody else was faster.
    """

    def __init__(self, cluster: ClusterApi) -> None:
        self._cluster = cluster

    def list(self, path: str, **query: str) -> list[Object]:
        """Return the objects of a collection; none for a kind that is not served."""
        return self._cluster.list(path, **query)[0]

    def get(self, path: str) -> Object | None:
        """Return an object, or None."""
        return self._cluster.get(path)

    def follow(self, path: str) -> Iterator[tuple[Object | None, bool]]:
        """Yield the objects of a collection that appear, change or go, without end.

        A kind may come and go, with its definition, while it is followed. Each object comes with
        whether it is gone; None stands for any that may have gone unseen.
        """
        served = False
        while True:
            try:
                found, version = self._cluster.list(path)
                if version or served:
                    yield None, True
                served = bool(version)
                yield from ((item, False) for item in found)
                if served:
                    for event in self._cluster.events(path, version, _WATCH_SECONDS):
                        yield event["object"], event["type"] == "DELETED"
                    continue
            except ClusterError as error:
                _log.info("%s: %s", path, error)
            time.sleep(_AGAIN_SECONDS)

    def create(self, path: str, manifest: Object) -> bool:
        """Create an object in a collection."""
        return self._write("POST", path, manifest)

    def replace(self, path: str, manifest: Object) -> bool:
        """Write an object in place of the former one."""
        return self._write("PUT", path, manifest)

    def patch(self, path: str, change: Any, content_type: str = MERGE_PATCH) -> bool:
        """Change an object."""
        return self._write("PATCH", path, change, content_type=content_type)

    def apply(self, path: str, manifest: Object) -> bool:
        """Create or change an object by server-side apply, with fields that others own."""
        query = {"fieldManager": "berth-lab", "force": "true"}
        return self._write("PATCH", path, manifest, query=query, content_type=APPLY)

    def delete(self, path: str, **query: str) -> bool:
        """Delete an object."""
        return self._write("DELETE", path, query=query)

    def event(self, about: Object, source: str, kind: str, reason: str, message: str) -> None:
        """Write an event about an object, as the program `source` does; repeated, it is renewed."""
        metadata = about["metadata"]
        time_now = now()
        name = f"{metadata['name']}."
        name += hashlib.sha256(f"{metadata['uid']} {reason} {message}".encode()).hexdigest()[:16]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {
                # A list of pods names no kind.
                "kind": about.get("kind") or "Pod",
                **{key: metadata[key] for key in ("name", "namespace", "uid")},
            },
            "type": kind,
            "reason": reason,
            "message": message[:_MESSAGE_LENGTH],
            "source": {"component": source},
            "reportingComponent": source,
            "firstTimestamp": time_now,
            "lastTimestamp": time_now,
        }
        self.apply(f"{in_namespace(metadata['namespace'], EVENTS)}/{name}", event)

    def _write(self, method: str, path: str, body: Any = None, **options: Any) -> bool:
        with suppress(NotFoundError, ConflictError):
            self._cluster.request(method, path, body, **options)
            return True
        return False
