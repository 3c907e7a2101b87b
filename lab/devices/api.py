"""Requests of the controller to the lab's API server: objects by path, and events.

Simulates nothing: a client of the real API server.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from berth.components.cluster.api import (
    APPLY,
    EVENTS,
    MERGE_PATCH,
    PODS,
    ClusterApi,
    ConflictError,
    NotFoundError,
    Object,
    within,
)

DEPLOYMENTS, DAEMONSETS = "/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets"
CLAIMS, SLICES = "/apis/resource.k8s.io/v1/resourceclaims", "/apis/resource.k8s.io/v1/resourceslices"

STRATEGIC_PATCH = "application/strategic-merge-patch+json"

_MANAGER = "berth-lab"
_MESSAGE_LENGTH = 1024


def now() -> str:
    """Return the time as the API server writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def path_of(pod: Object) -> str:
    """Return the path of a pod."""
    return f"{within(pod['metadata']['namespace'], PODS)}/{pod['metadata']['name']}"


class Api:
    """The API server of one lab.

    Every method raises a ClusterError when the server does not answer or refuses. A method that
    writes returns False when the object is gone or somebody else was faster.
    """

    def __init__(self, cluster: ClusterApi) -> None:
        self._cluster = cluster

    def list(self, path: str, **query: str) -> list[Object]:
        """Return the objects of a collection; none for a kind that is not served."""
        return self._cluster.list(path, **query)[0]

    def get(self, path: str) -> Object | None:
        """Return an object, or None."""
        return self._cluster.get(path)

    def create(self, path: str, manifest: Object) -> bool:
        """Create an object in a collection."""
        return self._request("POST", path, manifest)

    def replace(self, path: str, manifest: Object) -> bool:
        """Write an object in place of the former one."""
        return self._request("PUT", path, manifest)

    def patch(self, path: str, change: Any, content_type: str = MERGE_PATCH) -> bool:
        """Change an object."""
        return self._request("PATCH", path, change, content_type=content_type)

    def apply(self, path: str, manifest: Object) -> bool:
        """Create or change an object by server-side apply, with fields that others own."""
        query = {"fieldManager": _MANAGER, "force": "true"}
        return self._request("PATCH", path, manifest, query=query, content_type=APPLY)

    def delete(self, path: str) -> bool:
        """Delete an object."""
        return self._request("DELETE", path)

    def event(self, pod: Object, source: str, kind: str, reason: str, message: str) -> None:
        """Write an event about a pod, as the program `source` does; a repetition is counted."""
        about = {key: pod["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
        time, folder = now(), within(about["namespace"], EVENTS)
        digest = hashlib.sha256(f"{about['uid']} {reason} {message}".encode()).hexdigest()[:16]
        name = f"{about['name']}.{digest}"
        before = self.get(f"{folder}/{name}")
        if before is not None:
            self.patch(f"{folder}/{name}", {"count": (before.get("count") or 1) + 1, "lastTimestamp": time})
            return
        event = {
            "metadata": {"name": name, "namespace": about["namespace"]},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", **about},
            "type": kind,
            "reason": reason,
            "message": message[:_MESSAGE_LENGTH],
            "source": {"component": source},
            "reportingComponent": source,
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }
        self.create(folder, event)

    def _request(self, method: str, path: str, body: Any = None, **options: Any) -> bool:
        with suppress(NotFoundError, ConflictError):
            self._cluster.request(method, path, body, **options)
            return True
        return False
