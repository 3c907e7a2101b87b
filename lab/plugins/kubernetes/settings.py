"""The provider's own settings: what the stand-in takes over, and which cluster they name.

Answers to (read): pulumi-kubernetes 4.29.0, provider/pkg/provider/provider.go (Configure, CheckConfig, DiffConfig):
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.29.0/provider/pkg/provider/provider.go
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.kubernetes import kubeconfig
from berth.lab.plugins.provider import DiffRequest, DiffResult, Kind, ProviderError
from berth.lab.plugins.values import Unknown, has, reveal

if TYPE_CHECKING:
    from collections.abc import Mapping

# Which cluster is meant; nothing else of the settings moves objects elsewhere.
_ADDRESS_KEYS = ("kubeconfig", "context", "cluster")

# Each setting that the stand-in heeds, with the variable that sets it for all providers.
_SWITCHES = {
    "deleteUnreachable": "PULUMI_K8S_DELETE_UNREACHABLE",
    "enableConfigMapMutable": "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE",
    "enablePatchForce": "PULUMI_K8S_ENABLE_PATCH_FORCE",
    "enableSecretMutable": "PULUMI_K8S_ENABLE_SECRET_MUTABLE",
    "skipUpdateUnreachable": "PULUMI_K8S_SKIP_UPDATE_UNREACHABLE",
    "upsertExistingObjects": "PULUMI_K8S_UPSERT_EXISTING_OBJECTS",
}


@dataclass(frozen=True)
class Settings:
    """The settings of one provider.

    Attributes:
        access: the cluster, or None while the kubeconfig is not known (previews).
        namespace: where objects without a namespace go, or nothing.
        switches: the options that are on, by their names.
    """

    access: kubeconfig.Access | None
    namespace: str
    switches: frozenset[str]


def read(given: Mapping[str, Any]) -> Settings:
    """Settings from what the engine passes on; numbers, booleans and objects arrive as text.

    Raises:
        ProviderError: the kubeconfig cannot be used, or a setting asks for what the stand-in does not do.
    """
    plain = reveal(given)
    if plain.get("renderYamlToDirectory"):
        raise ProviderError(
            "renderYamlToDirectory is not part of the lab's stand-in for the kubernetes provider; "
            "install the real one to render manifests"
        )
    if str(plain.get("enableServerSideApply", "true")).lower() == "false":
        raise ProviderError(
            "the lab's stand-in for the kubernetes provider only knows server-side apply; "
            "leave enableServerSideApply out, or install the real provider"
        )
    switches = frozenset(
        name
        for name, variable in _SWITCHES.items()
        if str(plain.get(name, os.environ.get(variable, ""))).lower() == "true"
    )
    access = None if any(has(plain.get(key), Unknown) for key in _ADDRESS_KEYS) else _access(plain)
    namespace = plain.get("namespace")
    namespace = namespace if isinstance(namespace, str) else ""
    return Settings(access, namespace or (access.namespace if access else ""), switches)


def compare(request: DiffRequest) -> DiffResult:
    """Which settings differ; a new cluster replaces the provider, and with it everything made with it.

    A kubeconfig with new credentials for the same cluster replaces nothing; nor does anything while
    `clusterIdentifier` stays as it is.
    """
    old = reveal(request.old_inputs or request.olds)
    new = reveal(request.news)
    changed = [
        key
        for key in sorted(old.keys() | new.keys())
        if not key.startswith("__") and key != "version" and old.get(key) != new.get(key)
    ]
    kinds = {key: Kind.ADD if key not in old else Kind.DELETE if key not in new else Kind.UPDATE for key in changed}
    moves: set[str] = {"clusterIdentifier"} & set(changed)
    unknown = [key for key in changed if isinstance(new.get(key), Unknown)]
    if set(unknown) & set(_ADDRESS_KEYS) or (set(changed) & set(_ADDRESS_KEYS) and _elsewhere(old, new)):
        moves |= set(changed) & set(_ADDRESS_KEYS)
    if new.get("clusterIdentifier") and "clusterIdentifier" not in changed:
        moves = set()
    return DiffResult(
        {key: kind.as_replace() if key in moves else kind for key, kind in kinds.items()}, input_diff=True
    )


def _elsewhere(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    try:
        return _access(old).identity != _access(new).identity
    except ProviderError:
        # A kubeconfig whose file is gone says nothing of where the old cluster was.
        return False


def _access(plain: Mapping[str, Any]) -> kubeconfig.Access:
    text = plain.get("kubeconfig") or ""
    text = text if isinstance(text, str) else json.dumps(text)
    return kubeconfig.load(text, str(plain.get("context") or ""), str(plain.get("cluster") or ""))
