"""Copies of a cluster's collections: read once, or read once and then watched.

A question about a thousand berths is answered from copies, with a number of requests that does not
depend on the number of berths.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from berth.components.cluster.api import ClusterApi, ClusterError, Object, Reader

# The API server ends a watch after this time, and the next one goes on where it ended: a connection
# that has died without a word is noticed.
_WATCH_SECONDS = 60
_RETRY_SECONDS = 1.0
_UNKNOWN_SECONDS = 5.0

_Query = tuple[str, tuple[tuple[str, str], ...]]


class Snapshot:
    """Reader that lists a collection at most once."""

    def __init__(self, api: Reader) -> None:
        self._api = api
        self._listed: dict[_Query, tuple[list[Object], str]] = {}

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        """Return a collection's objects as they were at the first list, and their version."""
        key = _key(path, query)
        if key not in self._listed:
            objects, version = self._api.list(path, **query)
            self._listed[key] = slim(path, objects), version
        return self._listed[key]

    def get(self, path: str) -> Object | None:
        """Return one object as it is now; None where the path has nothing."""
        return self._api.get(path)


class Mirror:
    """Reader whose collections are listed at the first use, and then watched by a thread.

    `changed` is set when an object appears, changes or disappears.
    """

    def __init__(self, api: ClusterApi, changed: threading.Event | None = None) -> None:
        self.changed = changed or threading.Event()
        self._api = api
        self._stop = threading.Event()
        self._copies: dict[_Query, _Copy] = {}

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        """Return a collection's objects as the last event of the watch left them."""
        key = _key(path, query)
        if key not in self._copies:
            copy = _Copy(path, query)
            copy.read(self._api)
            self._copies[key] = copy
            # A daemon: a watch without events does not hold up the end of the program.
            threading.Thread(
                target=self._follow, args=[copy], daemon=True, name=f"watch of {path}"
            ).start()
        return self._copies[key].content()

    def get(self, path: str) -> Object | None:
        """Return one object as it is now; None where the path has nothing."""
        return self._api.get(path)

    def stop(self) -> None:
        """End the watches; each ends with the next event at the latest."""
        self._stop.set()

    def _follow(self, copy: _Copy) -> None:
        while not self._stop.is_set():
            try:
                if copy.is_stale:
                    copy.read(self._api)
                    self.changed.set()
                for event in copy.events(self._api):
                    if self._stop.is_set():
                        return
                    if copy.take(event):
                        self.changed.set()
            except ClusterError as error:
                if copy.is_stale:
                    copy.error = error
                    self.changed.set()
                # It broke off, or the server has forgotten the version: the next list shows what
                # the watch has missed, or why the server does not answer.
                copy.is_stale = True
            # The API server may not have the collection of an operator yet.
            self._stop.wait(_RETRY_SECONDS if copy.version else _UNKNOWN_SECONDS)


@dataclass
class _Copy:
    """Objects of one collection, by namespace and name."""

    path: str
    query: dict[str, str]
    is_stale: bool = False
    version: str = ""
    error: ClusterError | None = None
    _objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, api: ClusterApi) -> None:
        objects, version = api.list(self.path, **self.query)
        with self._lock:
            self._objects = {_identity(item): item for item in slim(self.path, objects)}
            self.version = version
            self.error = None
            self.is_stale = not version

    def events(self, api: ClusterApi) -> Iterator[Object]:
        if not self.version:
            return iter(())
        return api.events(
            self.path, self.version, _WATCH_SECONDS, allowWatchBookmarks="true", **self.query
        )

    def take(self, event: Object) -> bool:
        """Take an event over; return whether it changes an object."""
        kind = event["type"]
        item = event["object"]
        with self._lock:
            self.version = item["metadata"]["resourceVersion"]
            if kind == "DELETED":
                self._objects.pop(_identity(item), None)
            elif kind != "BOOKMARK":
                (self._objects[_identity(item)],) = slim(self.path, [item])
        return bool(kind != "BOOKMARK")

    def content(self) -> tuple[list[Object], str]:
        with self._lock:
            if self.error:
                raise self.error
            return list(self._objects.values()), self.version


def slim(path: str, objects: list[Object]) -> list[Object]:
    """Return objects without the parts that no question about many objects needs.

    Managed fields are half of an object. Those of RayClusters stay: they name who suspended one.
    """
    for item in objects:
        if path.endswith("/rayclusters"):
            continue
        item["metadata"].pop("managedFields", None)
        if path.endswith("/pods"):
            item["spec"].pop("volumes", None)
            for container in (
                *item["spec"].get("containers", ()),
                *item["spec"].get("initContainers", ()),
            ):
                for key in _LARGE_OF_CONTAINERS:
                    container.pop(key, None)
                # Variables from Secrets stay: a container does not start without them.
                if variables := [entry for entry in container.pop("env", ()) if _of_secret(entry)]:
                    container["env"] = variables
    return objects


def _of_secret(variable: Object) -> bool:
    """Return whether a Secret that the settings name has the value; Ray's token is not one."""
    return (
        "secretKeyRef" in (variable.get("valueFrom") or {}) and variable["name"] != "RAY_AUTH_TOKEN"
    )


_LARGE_OF_CONTAINERS = (
    "volumeMounts",
    "livenessProbe",
    "readinessProbe",
    "lifecycle",
    "command",
    "args",
)


def _key(path: str, query: dict[str, str]) -> _Query:
    return path, tuple(sorted(query.items()))


def _identity(item: Object) -> tuple[str, str]:
    metadata = item["metadata"]
    return str(metadata.get("namespace", "")), str(metadata["name"])
