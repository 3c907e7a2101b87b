"""Contents of a cluster beside its nodes: GKE's add-ons, and objects that go with the cluster.

Answers to (real): the custom resource definitions of KubeRay's own chart, for GKE's Ray operator
    add-on.
Answers to (read):
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra
    (names of managed DRANET's device classes).
Answers to (read): https://docs.cloud.google.com/kubernetes-engine/docs/concepts/persistent-volumes
    (name, driver and binding mode of GKE's default StorageClass).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import yaml

from berth.components.cluster.api import NAMESPACES, ClusterApi, ConflictError, NotFoundError
from berth.components.core.fast_yaml import LOADER
from berth.lab.plugins.gcp import addons
from berth.lab.plugins.gcp.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

KEPT_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces of the control plane."""

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
_STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"

_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.2

# Label of the objects that Kubernetes creates itself.
_BUILT_IN = "kubernetes.io/bootstrapping"

# Kinds without a namespace of which charts and programs create objects.
_CLUSTER_WIDE = (
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    _DEVICE_CLASSES,
    _DRIVERS,
    _STORAGE_CLASSES,
)


def ray_operator(inputs: dict[str, Any]) -> bool:
    """Return whether GKE's Ray operator add-on is on in a cluster."""
    configs = (inputs.get("addonsConfig") or {}).get("rayOperatorConfigs") or []
    return any(config.get("enabled") for config in configs)


def define(api: ClusterApi, folder: Path) -> None:
    """Create the definitions in a folder, and wait until they are served; existing ones stay.

    Args:
        api: the lab's API server.
        folder: YAML files with one definition each.

    Raises:
        ProviderError: the folder has none, or the server does not serve them in time.
        ClusterError: the server refuses one.
    """
    # A megabyte each: the pure Python loader takes seconds.
    definitions = [yaml.load(path.read_text(), Loader=LOADER) for path in sorted(folder.glob("*.yaml"))]  # noqa: S506 (either loader is safe)
    if not definitions:
        raise ProviderError(f"the lab has no definitions in {folder}; `berth lab up` puts them there")
    serve(api, definitions)


def serve(api: ClusterApi, definitions: Sequence[dict[str, Any]]) -> None:
    """Create definitions, and wait until they are served; existing ones stay.

    Args:
        api: the lab's API server.
        definitions: custom resource definitions.

    Raises:
        ProviderError: the server does not serve them in time.
        ClusterError: the server refuses one.
    """
    for definition in definitions:
        with suppress(ConflictError):
            api.create(_DEFINITIONS, definition)

    def pending() -> list[str]:
        served = {_name(entry) for entry in api.list(_DEFINITIONS)[0] if _established(entry)}
        return [_name(definition) for definition in definitions if _name(definition) not in served]

    left = _until_empty(pending)
    if left:
        raise ProviderError(f"the lab's API server does not serve {', '.join(left)} yet; try again")


def storage_class(api: ClusterApi) -> None:
    """Create GKE's default StorageClass; an existing one stays.

    Args:
        api: the lab's API server.

    Raises:
        ClusterError: the server refuses it.
    """
    manifest = addons.storage_class("standard-rwo", "pd.csi.storage.gke.io", {"type": "pd-balanced"})
    manifest["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    with suppress(ConflictError):
        api.create(_STORAGE_CLASSES, manifest)


def add_ons(api: ClusterApi, inputs: dict[str, Any]) -> None:
    """Create what a cluster's add-ons for volumes and secrets bring; existing objects stay.

    Args:
        api: the lab's API server.
        inputs: inputs of the cluster.

    Raises:
        ProviderError: the server does not serve the kinds in time.
        ClusterError: the server refuses an object.
    """
    for path, manifests in ((_DRIVERS, addons.drivers(inputs)), (_STORAGE_CLASSES, addons.storage_classes(inputs))):
        for manifest in manifests:
            with suppress(ConflictError):
                api.create(path, manifest)
    if found := addons.definitions(inputs):
        serve(api, found)


def network_classes(api: ClusterApi) -> None:
    """Create the device classes of GKE's managed DRANET; existing ones stay.

    The names are those of "Allocate network resources by using managed DRANET". The page does not
    say what they select by, only which NICs each of them is for.

    Args:
        api: the lab's API server.

    Raises:
        ClusterError: the server refuses one.
    """
    for name, is_rdma in (("mrdma.google.com", "true"), ("netdev.google.com", "false")):
        expression = f'device.driver == "dra.net" && device.attributes["dra.net"].rdma == {is_rdma}'
        manifest = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        with suppress(ConflictError):
            api.create(_DEVICE_CLASSES, manifest)


def clear(api: ClusterApi) -> list[str]:
    """Delete what goes with a cluster: namespaces but the control plane's, and other objects.

    Objects in the namespace `default` stay: berth has none there. Definitions of custom kinds stay
    too: charts and GKE's add-ons leave them, and deleting them keeps the API server busy for half a
    minute.

    Args:
        api: the lab's API server.

    Returns:
        Names of the namespaces in deletion; empty when all are gone.
    """

    def namespaces() -> list[str]:
        return [_name(entry) for entry in api.list(NAMESPACES)[0] if _name(entry) not in KEPT_NAMESPACES]

    _delete(api, NAMESPACES, namespaces())
    for path in (*_CLUSTER_WIDE, *_custom_kinds(api)):
        own = [entry for entry in api.list(path)[0] if _BUILT_IN not in (entry["metadata"].get("labels") or {})]
        _delete(api, path, [_name(entry) for entry in own if not _name(entry).startswith("system:")])
    return _until_empty(namespaces)


def _custom_kinds(api: ClusterApi) -> list[str]:
    """Return the paths of custom kinds without a namespace."""
    specs = [definition["spec"] for definition in api.list(_DEFINITIONS)[0]]
    return [
        f"/apis/{spec['group']}/{next(entry['name'] for entry in spec['versions'] if entry['storage'])}"
        f"/{spec['names']['plural']}"
        for spec in specs
        if spec["scope"] == "Cluster"
    ]


def _name(entry: dict[str, Any]) -> str:
    return str(entry["metadata"]["name"])


def _established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)


def _delete(api: ClusterApi, path: str, names: Iterable[str]) -> None:
    for name in names:
        # Gone by now, or in deletion already.
        with suppress(NotFoundError, ConflictError):
            api.request("DELETE", f"{path}/{name}")


def _until_empty(look: Callable[[], list[str]]) -> list[str]:
    """Wait until a list is empty, or patience ends; return what is left."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    return left
