"""Nodes in the lab's API server: made, changed and removed so that a pool has what its record says.

Answers to (real): the API server of the lab, in which the nodes are made.
Answers to (read):
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools (labels
    and taints of a pool change on the nodes that are there).
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from berth.lab.plugins.gcp import contents, real_node
from berth.lab.plugins.gcp.nodes import (
    LABELS_ANNOTATION,
    POOL_LABEL,
    TAINTS_ANNOTATION,
    applied,
    expected,
    labels,
    manifest,
    taint_key,
    taints,
)
from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from pathlib import Path

    from berth.lab.plugins.gcp.store import Record

_TIMEOUT_SECONDS = 20
_AUTOSCALER = "cluster-autoscaler"
_NOT_FOUND = 404
_CONFLICT = 409


class Fleet:
    """The lab's API server, as the cloud sees it.

    Args:
        kubeconfig: the administrator's kubeconfig of the lab.
        definitions: folder with the custom resource definitions of KubeRay.
    """

    def __init__(self, kubeconfig: Path, definitions: Path | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._definitions = definitions
        self._lock = threading.Lock()

    def endpoint(self) -> tuple[str, str]:
        """The API server's `host:port` and its CA certificate (base64 of PEM).

        Raises:
            ProviderError: when the lab has no kubeconfig.
        """
        try:
            config = yaml.safe_load(self._kubeconfig.read_text())
            cluster = config["clusters"][0]["cluster"]
            server = str(cluster["server"])
            data = cluster.get("certificate-authority-data")
            if not data:
                data = base64.b64encode((self._kubeconfig.parent / cluster["certificate-authority"]).read_bytes())
        except (OSError, KeyError, IndexError, TypeError, yaml.YAMLError) as error:
            raise ProviderError(
                f"the lab's control plane is not there: {self._kubeconfig} cannot be read ({error}); "
                "`berth lab up` starts it"
            ) from None
        text = data.decode() if isinstance(data, bytes) else str(data)
        return server.removeprefix("https://").rstrip("/"), text

    @cached_property
    def _core(self) -> Any:
        # The plugin starts without it: only who deals with nodes pays for the import.
        from kubernetes import client, config  # noqa: PLC0415

        self.endpoint()
        settings = client.Configuration()
        config.load_kube_config(str(self._kubeconfig), client_configuration=settings)
        settings.retries = 1
        return client.CoreV1Api(client.ApiClient(settings))

    def _call(self, method: str, *arguments: Any, missing_is_fine: bool = False, **options: Any) -> Any:
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        with self._lock:
            core = self._core
        try:
            return getattr(core, method)(*arguments, _request_timeout=_TIMEOUT_SECONDS, **options)
        except ApiException as error:
            if missing_is_fine and error.status == _NOT_FOUND:
                return None
            if method == "create_node" and error.status == _CONFLICT:
                return None
            raise ProviderError(f"the lab's API server refused {method}: {error.status} {error.body}") from None
        except (HTTPError, OSError) as error:
            raise ProviderError(
                f"the lab's API server at {self.endpoint()[0]} does not answer ({type(error).__name__}); "
                "`berth lab up` starts it again"
            ) from None

    def version(self) -> str:
        """The API server's version, such as `v1.36.3`."""
        from kubernetes import client  # noqa: PLC0415

        with self._lock:
            api = self._core.api_client
        try:
            return str(client.VersionApi(api).get_code(_request_timeout=_TIMEOUT_SECONDS).git_version)
        except Exception as error:  # noqa: BLE001 (anything here says the same: it does not answer)
            raise ProviderError(
                f"the lab's API server at {self.endpoint()[0]} does not answer ({type(error).__name__}); "
                "`berth lab up` starts it again"
            ) from None

    def nodes(self, pool: str) -> dict[str, Any]:
        """The nodes that carry a pool's label, by name."""
        answer = self._call("list_node", label_selector=f"{POOL_LABEL}={pool}")
        return {node.metadata.name: node for node in answer.items}

    def listed(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """Objects as the API server writes them.

        Args:
            kind: `nodes`, `pods`, `resourceclaims` or `resourceslices`.
            selector: a field selector of nodes or pods.
        """
        if kind.startswith("resource"):
            devices: list[dict[str, Any]] = self._reached(contents.claimed_devices, kind)
            return devices
        method = {"nodes": "list_node", "pods": "list_pod_for_all_namespaces"}[kind]
        answer = self._call(method, field_selector=selector, _preload_content=False)
        items: list[dict[str, Any]] = json.loads(answer.data)["items"]
        return items

    def event(self, pod: dict[str, Any], kind: str, reason: str, message: str) -> None:
        """Write on a pod what the cluster's autoscaler says of it; said again, it is counted.

        Args:
            pod: the pod.
            kind: `Normal` or `Warning`.
            reason: the short word for it.
            message: the words.
        """
        about = {key: pod["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
        namespace, now = about["namespace"], datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        digest = hashlib.sha256(f"{about['uid']} {reason} {message}".encode()).hexdigest()[:16]
        name = f"{about['name']}.{digest}"
        there = self._call("read_namespaced_event", name, namespace, missing_is_fine=True)
        if there is not None:
            body = {"count": (there.count or 1) + 1, "lastTimestamp": now}
            self._call("patch_namespaced_event", name, namespace, body, missing_is_fine=True)
            return
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", **about},
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": _AUTOSCALER},
            "reportingComponent": _AUTOSCALER,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self._call("create_namespaced_event", namespace, event, missing_is_fine=True)

    def define_ray(self) -> None:
        """Have the kinds of Ray served, as GKE's add-on does.

        Raises:
            ProviderError: they cannot be.
        """
        if self._definitions is not None:
            self._reached(contents.define, self._definitions)

    def define_network_classes(self) -> None:
        """Have the classes of network devices, as GKE's managed DRANET does.

        Raises:
            ProviderError: they cannot be.
        """
        self._reached(contents.network_classes)

    def clear(self) -> list[str]:
        """Delete all that a cluster takes with it; the names of what is still going away.

        Raises:
            ProviderError: when the API server does not answer.
        """
        left: list[str] = self._reached(contents.clear)
        return left

    def _reached(self, function: Any, *arguments: Any) -> Any:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        with self._lock:
            api = self._core.api_client
        try:
            return function(api, *arguments)
        except (HTTPError, OSError) as error:
            raise ProviderError(
                f"the lab's API server at {self.endpoint()[0]} does not answer ({type(error).__name__}); "
                "`berth lab up` starts it again"
            ) from None

    def reconcile(self, pool: Record) -> None:
        """Make a pool's nodes be what its record says: missing ones made, others removed, labels and taints set."""
        wanted = expected(pool)
        there = self.nodes(pool.name)
        self.remove([name for name in there if name not in wanted])
        version = self.version() if any(name not in there for name in wanted) else ""
        for name, (zone, number) in wanted.items():
            if name not in there:
                node = manifest(pool, zone, number, version)
                real = name == real_node.name(self._kubeconfig)
                self._call("create_node", real_node.adopted(node) if real else node)
            else:
                self._adjust(there[name], pool, zone)

    def _adjust(self, node: Any, pool: Record, zone: str) -> None:
        """Bring a node's labels and taints to what the pool's record says; those that others gave it stay."""
        name = node.metadata.name
        annotations = node.metadata.annotations or {}
        now = node.metadata.labels or {}
        wanted = labels(pool, zone, name)
        given = [pair.split("=", 1)[0] for pair in annotations.get(LABELS_ANNOTATION, "").split(",") if pair]
        changes: dict[str, str | None] = {key: value for key, value in wanted.items() if now.get(key) != value}
        changes |= {key: None for key in given if key not in wanted and key in now}

        before = [
            {"key": taint.key, "value": taint.value or "", "effect": taint.effect} for taint in node.spec.taints or []
        ]
        ours = {*annotations.get(TAINTS_ANNOTATION, "").split(","), *(taint_key(taint) for taint in taints(pool))}
        after = [*taints(pool), *(taint for taint in before if taint_key(taint) not in ours)]

        body: dict[str, Any] = {}
        if changes:
            body["metadata"] = {"labels": changes, "annotations": applied(pool)}
        if sorted(map(taint_key, after)) != sorted(map(taint_key, before)):
            body["metadata"] = {"labels": changes, "annotations": applied(pool)}
            body["spec"] = {"taints": after}
        if body:
            self._call("patch_node", name, body, missing_is_fine=True)

    def remove(self, names: list[str]) -> None:
        """Take nodes away with the pods on them, as a deleted machine does.

        They are closed first, so that what replaces their pods goes elsewhere.
        """
        for name in names:
            self._call("patch_node", name, {"spec": {"unschedulable": True}}, missing_is_fine=True)
        for name in names:
            self._delete_pods(name)
            self._call("delete_node", name, missing_is_fine=True)
            self._delete_pods(name)

    def _delete_pods(self, node: str) -> None:
        pods = self._call("list_pod_for_all_namespaces", field_selector=f"spec.nodeName={node}")
        for pod in pods.items:
            self._call(
                "delete_namespaced_pod",
                pod.metadata.name,
                pod.metadata.namespace,
                grace_period_seconds=0,
                missing_is_fine=True,
            )
