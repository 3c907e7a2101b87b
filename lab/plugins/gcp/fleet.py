"""Nodes in the lab's API server: made, changed and removed as the pools' records say."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from berth.components.cluster.api import (
    MERGE_PATCH,
    NODES,
    PODS,
    ClusterApi,
    ClusterError,
    ConflictError,
    NotFoundError,
    UnreachableError,
    in_namespace,
)
from berth.components.hardware.names import POOL_LABEL
from berth.lab.plugins.gcp import contents, real_node
from berth.lab.plugins.gcp.errors import ProviderError
from berth.lab.plugins.gcp.nodes import (
    LABELS_ANNOTATION,
    TAINTS_ANNOTATION,
    applied,
    expected,
    labels,
    manifest,
    taint_key,
    taints,
)
from berth.lab.plugins.gcp.store import StoredRecord


class SimulatedFleet:
    """The lab's API server, as the cloud sees it.

    Args:
        kubeconfig: the administrator's kubeconfig of the lab.
        definitions: folder with the custom resource definitions of KubeRay.
    """

    def __init__(self, kubeconfig: Path, definitions: Path | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._definitions = definitions
        self._lock = threading.Lock()
        self._connection: ClusterApi | None = None

    def endpoint(self) -> tuple[str, str]:
        """The API server's `host:port` and its CA certificate (base64 of PEM)."""
        try:
            cluster = yaml.safe_load(self._kubeconfig.read_text())["clusters"][0]["cluster"]
            return cluster["server"].removeprefix("https://"), cluster["certificate-authority-data"]
        except (OSError, KeyError, IndexError, TypeError, yaml.YAMLError) as error:
            raise ProviderError(
                f"the lab's control plane is not there: {self._kubeconfig} cannot be read"
                f" ({error}); `berth lab up` starts it"
            ) from None

    @contextmanager
    def _connected(self) -> Iterator[ClusterApi]:
        """Give the connection to the API server; its errors become the plugin's."""
        try:
            with self._lock:
                if self._connection is None:
                    self.endpoint()
                    self._connection = ClusterApi(self._kubeconfig.read_text())
            yield self._connection
        except UnreachableError as error:
            raise ProviderError(
                f"the lab's API server at {self.endpoint()[0]} does not answer ({error.cause}); "
                "`berth lab up` starts it again"
            ) from None
        except ClusterError as error:
            raise ProviderError(f"the lab: {error}") from None

    def version(self) -> str:
        """The API server's version, such as `v1.36.3`."""
        with self._connected() as api:
            return str(api.request("GET", "/version")["gitVersion"])

    def nodes(self, pool: str) -> dict[str, dict[str, Any]]:
        """The nodes that carry a pool's label, by name."""
        with self._connected() as api:
            return {
                node["metadata"]["name"]: node
                for node in api.list(NODES, labelSelector=f"{POOL_LABEL}={pool}")[0]
            }

    def define_ray(self) -> None:
        """Have the kinds of Ray served, as GKE's add-on does."""
        if self._definitions is not None:
            self.create(contents.definitions(self._definitions))

    def create(self, manifests: list[dict[str, Any]]) -> None:
        """Have the objects of a cluster's add-ons; existing ones stay."""
        with self._connected() as api:
            contents.create(api, manifests)

    def clear(self) -> list[str]:
        """Delete all that a cluster takes with it; the names of what is still going away."""
        with self._connected() as api:
            return contents.clear(api)

    def reconcile(self, pool: StoredRecord) -> None:
        """Bring a pool's nodes to its record: create, remove, and set labels and taints."""
        target = expected(pool)
        there = self.nodes(pool.name)
        self.remove([name for name in there if name not in target])
        version = self.version() if any(name not in there for name in target) else ""
        for name, (zone, number) in target.items():
            if name not in there:
                node = manifest(pool, zone, number, version)
                real = name == real_node.name(self._kubeconfig)
                with self._connected() as api, suppress(ConflictError):
                    api.create(NODES, real_node.adopted(node) if real else node)
            else:
                self._adjust(there[name], pool, zone)

    def _adjust(self, node: dict[str, Any], pool: StoredRecord, zone: str) -> None:
        """Bring a node's labels and taints to the pool's record; those of others stay."""
        changed_labels = _label_changes(node["metadata"], pool, zone)
        changed_taints = _taint_changes(node, pool)
        body: dict[str, Any] = {}
        if changed_labels or changed_taints is not None:
            body["metadata"] = {"labels": changed_labels, "annotations": applied(pool)}
        if changed_taints is not None:
            body["spec"] = {"taints": changed_taints}
        if body:
            with self._connected() as api:
                _change(api, f"{NODES}/{node['metadata']['name']}", body)

    def remove(self, names: list[str]) -> None:
        """Remove nodes with the pods on them, as a deleted machine does.

        The nodes are closed first, so that what replaces their pods goes elsewhere.
        """
        with self._connected() as api:
            for name in names:
                _change(api, f"{NODES}/{name}", {"spec": {"unschedulable": True}})
            for name in names:
                _delete_pods(api, name)
                with suppress(NotFoundError):
                    api.request("DELETE", f"{NODES}/{name}")
                _delete_pods(api, name)


def _label_changes(
    metadata: dict[str, Any], pool: StoredRecord, zone: str
) -> dict[str, str | None]:
    """Return the labels that a node has to get, and those of the pool's past that go (None)."""
    target = labels(pool, zone, metadata["name"])
    present = metadata.get("labels") or {}
    pairs = (metadata.get("annotations") or {}).get(LABELS_ANNOTATION, "").split(",")
    of_the_pool = [pair.partition("=")[0] for pair in pairs if pair]
    changes: dict[str, str | None] = {
        key: value for key, value in target.items() if present.get(key) != value
    }
    for key in of_the_pool:
        if key in present and key not in target:
            changes[key] = None
    return changes


def _taint_changes(node: dict[str, Any], pool: StoredRecord) -> list[dict[str, Any]] | None:
    """Return a node's taints by its pool's record, beside those of others; None for no change."""
    before = [
        {"key": taint["key"], "value": taint.get("value") or "", "effect": taint["effect"]}
        for taint in node.get("spec", {}).get("taints") or []
    ]
    annotations = node["metadata"].get("annotations") or {}
    of_the_pool = {
        *annotations.get(TAINTS_ANNOTATION, "").split(","),
        *map(taint_key, taints(pool)),
    }
    of_others = [taint for taint in before if taint_key(taint) not in of_the_pool]
    after = [*taints(pool), *of_others]
    return None if sorted(map(taint_key, after)) == sorted(map(taint_key, before)) else after


def _change(api: ClusterApi, path: str, body: dict[str, Any]) -> None:
    """Change fields of an object that may be gone."""
    with suppress(NotFoundError):
        api.request("PATCH", path, body, content_type=MERGE_PATCH)


def _delete_pods(api: ClusterApi, node: str) -> None:
    for pod in api.list(PODS, fieldSelector=f"spec.nodeName={node}")[0]:
        path = in_namespace(pod["metadata"]["namespace"], PODS)
        with suppress(NotFoundError):
            api.request("DELETE", f"{path}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
