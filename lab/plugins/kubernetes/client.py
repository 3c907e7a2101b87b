"""API server with paths of kinds by discovery, and watches that an interrupt ends.

Simulates nothing: it uses berth's client of the real API server.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from berth.components.cluster.api import ClusterApi, ClusterError
from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from collections.abc import Iterator

Item = dict[str, Any]

# Length of one watch: the longest that an interrupt waits for it.
_WATCH_SECONDS = 5


class NoMatchError(ProviderError):
    """Error: the server has no such kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')


@dataclass(frozen=True)
class Resource:
    """Place of the objects of one kind.

    Attributes:
        root: path of the group and version, such as `/apis/ray.io/v1`.
        plural: plural of the kind, such as `rayclusters`.
        namespaced: whether the objects live in namespaces.
    """

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of an object, or of all objects of the kind in a namespace."""
        place = f"/namespaces/{quote(namespace or 'default', safe='')}" if self.namespaced else ""
        return f"{self.root}{place}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")


class Cluster:
    """API server, connected to on first use. Safe to use from many threads."""

    def __init__(self, kubeconfig: str | None, canceled: threading.Event) -> None:
        self._kubeconfig = kubeconfig
        self._canceled = canceled
        self._lock = threading.Lock()
        self._connection: ClusterApi | None = None
        self._groups: dict[str, dict[str, Resource]] = {}
        self._group_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    @property
    def api(self) -> ClusterApi:
        """The connection.

        Raises:
            ClusterError: the kubeconfig cannot be used, or is not known yet (previews).
        """
        if self._kubeconfig is None:
            raise ClusterError("the kubeconfig of the cluster is not known yet")
        with self._lock:
            if self._connection is None:
                self._connection = ClusterApi(self._kubeconfig)
            return self._connection

    def resource(self, api_version: str, kind: str) -> Resource:
        """Return the place of a kind's objects.

        Raises:
            NoMatchError: the server does not have the kind; the next call asks again.
            ClusterError: the server cannot be asked.
        """
        with self._lock:
            group_lock = self._group_locks[api_version]
        # A hundred objects of one kind ask at once; the first asks the server.
        with group_lock:
            if kind not in self._groups.get(api_version, {}):
                self._groups[api_version] = self._discover(api_version)
            found = self._groups[api_version].get(kind)
        if found is None:
            raise NoMatchError(api_version, kind)
        return found

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Item | None:
        """Return an object; None where it is gone."""
        return self.api.get(self.resource(api_version, kind).path(namespace, name))

    def watch(self, path: str, name: str, version: str, deadline: float) -> Iterator[Item | None]:
        """Yield the later states of an object, None once it is deleted.

        The watch ends at the deadline (`time.monotonic()`), at an interrupt, and early where the
        server's history has a gap or the connection breaks; the caller reads the object again.
        """
        while not self._canceled.is_set() and time.monotonic() < deadline:
            seconds = max(1, min(_WATCH_SECONDS, int(deadline - time.monotonic())))
            try:
                for event in self.api.events(path, version, seconds, fieldSelector=f"metadata.name={name}"):
                    item = event["object"]
                    version = item["metadata"]["resourceVersion"]
                    yield None if event["type"] == "DELETED" else item
            except ClusterError:
                return

    def _discover(self, api_version: str) -> dict[str, Resource]:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        found = (self.api.get(root) or {}).get("resources") or []
        return {
            item["kind"]: Resource(root, item["name"], bool(item["namespaced"]))
            for item in found
            if "/" not in item["name"]
        }
