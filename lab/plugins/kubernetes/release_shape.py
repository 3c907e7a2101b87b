"""Shape of a Helm release's inputs and outputs, and the flags of helm that they stand for. Pure.

Answers to (recorded): state of a release, ../shared/upstream/kubernetes-plugin/2-state.json and
    6-state-updated.json (plugin 4.29.0).
Answers to (read): flags of install and upgrade, pulumi-kubernetes v4.32.0, helmCreate and
    helmUpdate in
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.32.0/provider/pkg/provider/helm_release.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from berth.components.core.fast_yaml import LOADER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berth.lab.plugins.values import Properties

SECONDS = 300
"""Time-out of a release that sets none."""

# Options that the real plugin records, given or not.
_OFF = [
    "allowNullValues",
    "atomic",
    "cleanupOnFail",
    "createNamespace",
    "dependencyUpdate",
    "devel",
    "disableCRDHooks",
    "disableOpenapiValidation",
    "disableWebhooks",
    "forceUpdate",
    "lint",
    "recreatePods",
    "renderSubchartNotes",
    "replace",
    "resetValues",
    "reuseValues",
    "skipAwait",
    "skipCrds",
    "verify",
    "waitForJobs",
]
_EMPTY = ("description", "keyring", "postrender", "version")
_REPOSITORY = ("repo", "caFile", "certFile", "keyFile", "username", "password")
_DROPPED = ("checksum", "compat", "manifest", "resourceNames", "status")

_KNOWN = frozenset(
    {
        "allowNullValues",
        "chart",
        "disableOpenapiValidation",
        "name",
        "namespace",
        "repositoryOpts",
        "timeout",
        "values",
        "version",
        *_DROPPED,
    }
)


def unsupported(given: Mapping[str, Any]) -> str:
    """Return an option of a release that the stand-in does not have; "" where it has all."""
    options = {key for key, value in given.items() if key not in _KNOWN and not key.startswith("__") and value}
    repository = given.get("repositoryOpts")
    if isinstance(repository, dict):
        options |= {f"repositoryOpts.{key}" for key, value in repository.items() if key != "repo" and value}
    return min(options, default="")


def with_defaults(given: Mapping[str, Any]) -> Properties:
    """Return the inputs with every option, as the state records them."""
    inputs: Properties = dict.fromkeys(_OFF, False)
    inputs |= dict.fromkeys(_EMPTY, "")
    inputs |= {key: value for key, value in given.items() if key not in _DROPPED and value is not None}
    inputs["namespace"] = inputs.get("namespace") or "default"
    inputs.setdefault("values", {})
    inputs["timeout"] = inputs.get("timeout") or SECONDS
    if isinstance(inputs.get("repositoryOpts"), dict):
        inputs["repositoryOpts"] = dict.fromkeys(_REPOSITORY, "") | inputs["repositoryOpts"]
    return inputs


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `over` in it, mappings merged key by key."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = deep_merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def chart_flags(inputs: Mapping[str, Any]) -> list[str]:
    """Return the flags that name a chart's version and repository."""
    flags = ["--version", str(inputs["version"])] if inputs.get("version") else []
    repository = (inputs.get("repositoryOpts") or {}).get("repo")
    return [*flags, "--repo", repository] if repository else flags


def install_flags(inputs: Mapping[str, Any]) -> list[str]:
    """Return the flags of `helm install`."""
    # The real plugin sets this option of an installation only (pulumi-kubernetes v4.32.0,
    # helmCreate and helmUpdate).
    flags = ["--disable-openapi-validation"] if inputs.get("disableOpenapiValidation") else []
    return [*flags, *_flags(inputs)]


def upgrade_flags(inputs: Mapping[str, Any]) -> list[str]:
    """Return the flags of `helm upgrade`."""
    return [*_flags(inputs), "--history-max", "0"]


def outputs_of(inputs: Mapping[str, Any], release: Mapping[str, Any]) -> Properties:
    """Return what the state records of a release."""
    chart = release["chart"]["metadata"]
    return {
        **inputs,
        "values": deep_merge(inputs.get("values") or {}, release.get("config") or {}),
        "version": chart["version"],
        "resourceNames": resource_names(release.get("manifest") or ""),
        "status": {
            "appVersion": str(chart.get("appVersion") or ""),
            "chart": chart["name"],
            "name": release["name"],
            "namespace": release["namespace"],
            "revision": release["version"],
            "status": release["info"]["status"],
            "version": chart["version"],
        },
    }


def resource_names(manifest: str) -> dict[str, list[str]]:
    """Return a manifest's objects by kind: `{"Deployment.apps/apps/v1": ["namespace/name"]}`."""
    names: dict[str, set[str]] = {}
    for item in yaml.load_all(manifest, Loader=LOADER):
        if not isinstance(item, dict) or not item.get("kind"):
            continue
        version = str(item.get("apiVersion", ""))
        group = version.rpartition("/")[0]
        kind = f"{item['kind']}.{group}" if group else item["kind"]
        metadata = item.get("metadata") or {}
        namespace, name = metadata.get("namespace"), str(metadata.get("name", ""))
        names.setdefault(f"{kind}/{version}", set()).add(f"{namespace}/{name}" if namespace else name)
    return {key: sorted(found) for key, found in sorted(names.items())}


def _flags(inputs: Mapping[str, Any]) -> list[str]:
    return [*chart_flags(inputs), "--wait", "--timeout", f"{int(inputs.get('timeout') or SECONDS)}s"]
