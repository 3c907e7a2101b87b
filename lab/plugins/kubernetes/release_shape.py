"""The shape of a Helm release's inputs and outputs, and the flags of helm that they stand for.

Pure but for reading value files.

Answers to (recorded): state of a release, ../shared/upstream/kubernetes-plugin/2-state.json and 6-state-updated.json (plugin 4.29.0).
Answers to (read): flags of install and upgrade, pulumi-kubernetes v4.32.0, helmCreate and helmUpdate in
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.32.0/provider/pkg/provider/helm_release.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from pulumi import FileAsset, StringAsset

from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from berth.lab.plugins.values import Properties

_SECONDS = 300

# The real plugin records every option, given or not.
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
_REPOSITORY = {
    "repo": "--repo",
    "caFile": "--ca-file",
    "certFile": "--cert-file",
    "keyFile": "--key-file",
    "username": "--username",
    "password": "--password",
}
_DROPPED = ("checksum", "compat", "manifest", "resourceNames", "status", "valueYamlFiles")

_CHART_FLAGS = {"devel": "--devel", "verify": "--verify"}
_COMMON_FLAGS = {
    **_CHART_FLAGS,
    "atomic": "--atomic",
    "dependencyUpdate": "--dependency-update",
    "renderSubchartNotes": "--render-subchart-notes",
}
_INSTALL_FLAGS = {
    **_COMMON_FLAGS,
    "createNamespace": "--create-namespace",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "disableWebhooks": "--no-hooks",
    "replace": "--replace",
    "skipCrds": "--skip-crds",
}
# The real plugin sets fewer options of an upgrade: neither `disableOpenapiValidation` nor `disableWebhooks` nor `skipCrds`
# (pulumi-kubernetes v4.32.0, helmUpdate).
_UPGRADE_FLAGS = {
    **_COMMON_FLAGS,
    "cleanupOnFail": "--cleanup-on-fail",
    "disableCRDHooks": "--no-hooks",
    "forceUpdate": "--force",
    "resetValues": "--reset-values",
    "reuseValues": "--reuse-values",
}


def with_defaults(given: Mapping[str, Any], namespace: str) -> Properties:
    """The inputs with every option, as the state records them."""
    inputs: Properties = dict.fromkeys(_OFF, False)
    inputs |= dict.fromkeys(_EMPTY, "")
    inputs |= {key: value for key, value in given.items() if key not in _DROPPED and value is not None}
    inputs["namespace"] = inputs.get("namespace") or namespace
    inputs.setdefault("values", {})
    if not inputs["skipAwait"]:
        inputs.setdefault("timeout", _SECONDS)
    inputs["timeout"] = inputs.get("timeout") or 0
    if isinstance(inputs.get("repositoryOpts"), dict):
        inputs["repositoryOpts"] = dict.fromkeys(_REPOSITORY, "") | inputs["repositoryOpts"]
    return inputs


def values_of(given: Mapping[str, Any], path_of: Callable[[str], Path | None]) -> Any:
    """The release's values: its value files merged in order, then `values` over them.

    Raises:
        ProviderError: a file is not there or not YAML.
    """
    values: Any = {}
    files = given.get("valueYamlFiles")
    for asset in files if isinstance(files, list) else []:
        values = deep_merge(values, _read_values(asset, path_of))
    own = given.get("values")
    return deep_merge(values, own) if isinstance(own, dict) else values if own is None else own


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the keys of `over` in it, mappings merged key by key."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = deep_merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def chart_flags(inputs: Mapping[str, Any]) -> list[str]:
    """Flags that say which chart."""
    flags = [flag for key, flag in _CHART_FLAGS.items() if inputs.get(key)]
    if inputs.get("version"):
        flags += ["--version", str(inputs["version"])]
    if inputs.get("keyring"):
        flags += ["--keyring", inputs["keyring"]]
    repository = inputs.get("repositoryOpts") or {}
    for key, flag in _REPOSITORY.items():
        if repository.get(key):
            flags += [flag, repository[key]]
    return flags


def install_flags(inputs: Mapping[str, Any]) -> list[str]:
    """Flags of `helm install`."""
    return _flags(inputs, _INSTALL_FLAGS)


def upgrade_flags(inputs: Mapping[str, Any]) -> list[str]:
    """Flags of `helm upgrade`."""
    history = inputs.get("maxHistory")
    return [*_flags(inputs, _UPGRADE_FLAGS), "--history-max", str(int(history or 0))]


def outputs_of(inputs: Mapping[str, Any], release: Mapping[str, Any]) -> Properties:
    """What the state records of a release: its inputs, and what became of them.

    Args:
        inputs: the release's inputs.
        release: the release as `helm install -o json` gives it.
    """
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
    """Names of a manifest's objects by kind: `{"Deployment.apps/apps/v1": ["namespace/name"]}`."""
    names: dict[str, set[str]] = {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for item in yaml.load_all(manifest, Loader=loader):
        if not isinstance(item, dict) or not item.get("kind"):
            continue
        version = str(item.get("apiVersion", ""))
        group = version.rpartition("/")[0]
        kind = f"{item['kind']}.{group}" if group else item["kind"]
        metadata = item.get("metadata") or {}
        namespace = metadata.get("namespace")
        name = str(metadata.get("name", ""))
        names.setdefault(f"{kind}/{version}", set()).add(f"{namespace}/{name}" if namespace else name)
    return {key: sorted(found) for key, found in sorted(names.items())}


def _flags(inputs: Mapping[str, Any], known: Mapping[str, str]) -> list[str]:
    flags = sorted({flag for key, flag in known.items() if inputs.get(key)} - set(_CHART_FLAGS.values()))
    flags += chart_flags(inputs)
    if not inputs.get("skipAwait"):
        flags += ["--wait", *(["--wait-for-jobs"] if inputs.get("waitForJobs") else [])]
    flags += ["--timeout", f"{inputs.get('timeout') or _SECONDS}s"]
    for key, flag in (("description", "--description"), ("postrender", "--post-renderer")):
        if inputs.get(key):
            flags += [flag, inputs[key]]
    return flags


def _read_values(asset: Any, path_of: Callable[[str], Path | None]) -> dict[str, Any]:
    if isinstance(asset, StringAsset):
        source, text = "given as text", asset.text
    elif isinstance(asset, FileAsset):
        path = path_of(asset.path)
        if path is None:
            raise ProviderError(f"the value file {asset.path} is not there")
        source, text = str(path), path.read_text(encoding="utf-8")
    else:
        raise ProviderError("value files are given as a file or as text; the lab's stand-in fetches none")
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ProviderError(f"the value file {source} is not YAML: {error}") from error
    if values is not None and not isinstance(values, dict):
        raise ProviderError(f"the value file {source} is not a mapping")
    return values or {}
