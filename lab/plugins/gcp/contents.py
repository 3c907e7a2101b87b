"""Contents of a cluster beside its nodes: GKE's add-ons, and objects that go with the cluster.

The objects of an add-on are in a file of the folder `addons`.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from berth.components.cluster.api import NAMESPACES, ClusterApi, ConflictError, NotFoundError
from berth.components.core.fast_yaml import LOADER
from berth.lab.plugins.gcp.errors import ProviderError

Manifest = dict[str, Any]

KEPT_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces of the control plane."""

ADD_ONS = Path(__file__).parent / "addons"

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PATHS = {
    "CustomResourceDefinition": _DEFINITIONS,
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
}

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
    *(path for path in _PATHS.values() if path != _DEFINITIONS),
)


def ray_operator(inputs: dict[str, Any]) -> bool:
    """Return whether GKE's Ray operator add-on is on in a cluster."""
    configs = (inputs.get("addonsConfig") or {}).get("rayOperatorConfigs") or []
    return any(config.get("enabled") for config in configs)


def add_on(name: str) -> list[Manifest]:
    """Return the objects of one of the add-ons of the folder `addons`."""
    return list(yaml.safe_load_all((ADD_ONS / f"{name}.yaml").read_text()))


def of_storage(inputs: dict[str, Any]) -> list[Manifest]:
    """Return what a cluster's add-ons for volumes and secrets bring, by the cluster's inputs."""
    configs = {
        **(inputs.get("addonsConfig") or {}),
        "secretSyncConfig": inputs.get("secretSyncConfig"),
    }
    names = {
        "gcsFuseCsiDriverConfig": "gcs-fuse",
        "gcpFilestoreCsiDriverConfig": "filestore",
        "secretSyncConfig": "secret-sync",
    }
    on = [name for config, name in names.items() if (configs.get(config) or {}).get("enabled")]
    return [manifest for name in ("disks", *on) for manifest in add_on(name)]


def definitions(folder: Path) -> list[Manifest]:
    """Return the custom resource definitions in the YAML files of a folder.

    Raises:
        ProviderError: the folder has none.
    """
    # A megabyte each: the pure Python loader takes seconds.
    found = [yaml.load(path.read_text(), Loader=LOADER) for path in sorted(folder.glob("*.yaml"))]  # noqa: S506 (either loader is safe)
    if not found:
        raise ProviderError(
            f"the lab has no definitions in {folder}; `berth lab up` puts them there"
        )
    return found


def create(api: ClusterApi, manifests: Sequence[Manifest]) -> None:
    """Create objects, and wait until new kinds are served; existing objects stay."""
    for manifest in manifests:
        with suppress(ConflictError):
            api.create(_PATHS[manifest["kind"]], manifest)
    defined = [
        _name(manifest) for manifest in manifests if manifest["kind"] == "CustomResourceDefinition"
    ]

    def pending() -> list[str]:
        served = {_name(entry) for entry in api.list(_DEFINITIONS)[0] if _established(entry)}
        return [name for name in defined if name not in served]

    if defined and (left := _until_empty(pending)):
        raise ProviderError(f"the lab's API server does not serve {', '.join(left)} yet; try again")


def clear(api: ClusterApi) -> list[str]:
    """Delete what goes with a cluster; return the names of namespaces that are still in deletion.

    Namespaces but the control plane's go, and other objects. Objects in the namespace `default`
    stay: berth has none there. Definitions of custom kinds stay too: charts and GKE's add-ons leave
    them, and deleting them keeps the API server busy for half a minute.
    """

    def namespaces() -> list[str]:
        return [
            _name(entry) for entry in api.list(NAMESPACES)[0] if _name(entry) not in KEPT_NAMESPACES
        ]

    _delete(api, NAMESPACES, namespaces())
    for path in (*_CLUSTER_WIDE, *_custom_kinds(api)):
        own = [
            entry
            for entry in api.list(path)[0]
            if _BUILT_IN not in (entry["metadata"].get("labels") or {})
        ]
        _delete(
            api, path, [_name(entry) for entry in own if not _name(entry).startswith("system:")]
        )
    return _until_empty(namespaces)


def _custom_kinds(api: ClusterApi) -> list[str]:
    """Return the paths of custom kinds without a namespace."""
    specs = [definition["spec"] for definition in api.list(_DEFINITIONS)[0]]
    return [
        f"/apis/{spec['group']}/{_stored_version(spec)}/{spec['names']['plural']}"
        for spec in specs
        if spec["scope"] == "Cluster"
    ]


def _stored_version(spec: dict[str, Any]) -> str:
    return next(str(version["name"]) for version in spec["versions"] if version["storage"])


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
