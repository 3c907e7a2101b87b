"""Add-ons of a cluster that volumes and secrets need: drivers, StorageClasses, kinds of objects.

Answers to (read): deploy/base/setup/csi_driver.yaml of
    https://github.com/GoogleCloudPlatform/gcs-fuse-csi-driver, and deploy/kubernetes/manifests and
    overlays/stable-master of https://github.com/kubernetes-sigs/gcp-filestore-csi-driver (the
    drivers)
Answers to (read): https://docs.cloud.google.com/filestore/docs/csi-driver (names and binding mode
    of the StorageClasses of shares, which are in the network `default`)
Answers to (read): config/crd/bases of
    https://github.com/kubernetes-sigs/secrets-store-sync-controller (fields of SecretProviderClass
    and SecretSync), and https://docs.cloud.google.com/secret-manager/docs/sync-k8-secrets (group
    and version on GKE)
"""

from __future__ import annotations

from typing import Any

from berth.components.gke import SHARE_CLASSES, SHARE_DRIVER

Inputs = dict[str, Any]

_TEXT, _TEXTS = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
_LEFT_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def drivers(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the CSIDrivers of a cluster's add-ons."""
    found = []
    if _addon(inputs, "gcsFuseCsiDriverConfig"):
        modes = {"requiresRepublish": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}
        found.append(_driver("gcsfuse.csi.storage.gke.io", modes))
    if _addon(inputs, "gcpFilestoreCsiDriverConfig"):
        found.append(_driver(SHARE_DRIVER, {"fsGroupPolicy": "File"}))
    return found


def storage_classes(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the StorageClasses that GKE's Filestore driver brings."""
    if not _addon(inputs, "gcpFilestoreCsiDriverConfig"):
        return []
    return [storage_class(name, SHARE_DRIVER, {"tier": known.tier}) for name, known in SHARE_CLASSES.items()]


def storage_class(name: str, driver: str, parameters: dict[str, str]) -> dict[str, Any]:
    """Return a StorageClass as GKE makes them: for volumes where the pod is, which can grow."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": driver,
        "parameters": parameters,
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": True,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def reads_secret_manager(inputs: Inputs) -> bool:
    """Return whether GKE synchronizes a cluster's Secrets with Secret Manager."""
    return bool((inputs.get("secretSyncConfig") or {}).get("enabled"))


def definitions(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the definitions of the kinds for Secret Manager, if they are served."""
    if not reads_secret_manager(inputs):
        return []
    provider = _object(
        {"provider": _TEXT, "parameters": _TEXTS, "secretObjects": {"type": "array", "items": _LEFT_OPEN}}
    )
    data = {"type": "array", "minItems": 1, "items": _object({"sourcePath": _TEXT, "targetKey": _TEXT}, required=True)}
    secret = {"type": {**_TEXT, "default": "Opaque"}, "data": data, "labels": _TEXTS, "annotations": _TEXTS}
    sync = _object(
        {
            "secretObject": {**_object(secret), "required": ["data"]},
            "secretProviderClassName": _TEXT,
            "secretSyncControllerName": {**_TEXT, "default": ""},
            "serviceAccountName": _TEXT,
            "forceSynchronization": _TEXT,
        }
    )
    sync["required"] = ["secretObject", "secretProviderClassName", "serviceAccountName"]
    return [
        _definition("secrets-store.csi.x-k8s.io", "SecretProviderClass", "secretproviderclasses", provider),
        _definition("secret-sync.gke.io", "SecretSync", "secretsyncs", sync),
    ]


def _addon(inputs: Inputs, name: str) -> bool:
    return bool(((inputs.get("addonsConfig") or {}).get(name) or {}).get("enabled"))


def _driver(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": name},
        "spec": {"attachRequired": False, "podInfoOnMount": True, **spec},
    }


def _object(properties: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": sorted(properties)} if required else {})}


def _definition(group: str, kind: str, plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object({"spec": spec, "status": _LEFT_OPEN})},
        "subresources": {"status": {}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
