"""Settings of the provider: the cluster that they name, and the options that the stand-in has.

Answers to (read): pulumi-kubernetes 4.29.0, provider/pkg/provider/provider.go (Configure,
    CheckConfig, DiffConfig):
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.29.0/provider/pkg/provider/provider.go
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from berth.components.core.fast_yaml import LOADER
from berth.lab.plugins.provider import DiffRequest, DiffResult, ProviderError, changed
from berth.lab.plugins.values import Unknown, reveal

if TYPE_CHECKING:
    from collections.abc import Mapping

_KNOWN = frozenset(
    {
        "kubeconfig",
        "context",
        "clusterIdentifier",
        "enableServerSideApply",
        "upsertExistingObjects",
        "version",
        "pluginDownloadURL",
    }
)

_UPSERT = "PULUMI_K8S_UPSERT_EXISTING_OBJECTS"


@dataclass(frozen=True)
class Settings:
    """Settings of one provider.

    Attributes:
        kubeconfig: text of the kubeconfig; None while it is not known (previews).
        upsert: whether a creation takes over an object that exists.
    """

    kubeconfig: str | None
    upsert: bool = False


def read(given: Mapping[str, Any]) -> Settings:
    """Return the settings that the engine passes; it passes booleans as text.

    Raises:
        ProviderError: the kubeconfig cannot be used, or a setting is not part of the stand-in.
    """
    plain = reveal(given)
    unknown = sorted(key for key in plain if key not in _KNOWN and not key.startswith("__"))
    if str(plain.get("enableServerSideApply", "true")).lower() == "false":
        unknown.append("enableServerSideApply: false")
    if unknown:
        raise ProviderError(
            f"the setting {unknown[0]} is not part of the lab's stand-in for the kubernetes provider;"
            " install the real one"
        )
    text = _kubeconfig(plain)
    if not isinstance(text, Unknown):
        _server(text)
    # The provider's setting wins over the variable, and only "true" is yes.
    upsert = str(plain.get("upsertExistingObjects", os.environ.get(_UPSERT, ""))).lower() == "true"
    return Settings(None if isinstance(text, Unknown) else str(text), upsert)


def compare(request: DiffRequest) -> DiffResult:
    """Return the settings that differ; another cluster replaces the provider and all its objects.

    New credentials for the same cluster replace nothing, and no change does while
    `clusterIdentifier` stays the same.
    """
    old, new = reveal(request.old_inputs or request.olds), reveal(request.news)
    kinds = {key: kind for key, kind in changed(old, new).items() if key != "version"}
    if "clusterIdentifier" in kinds:
        moved = "clusterIdentifier"
    elif {"kubeconfig", "context"} & kinds.keys() and not new.get("clusterIdentifier") and _elsewhere(old, new):
        moved = "kubeconfig" if "kubeconfig" in kinds else "context"
    else:
        moved = ""
    return DiffResult(
        {key: kind.as_replace() if key == moved else kind for key, kind in kinds.items()}, input_diff=True
    )


def _elsewhere(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    text = _kubeconfig(new)
    return isinstance(text, Unknown) or _server(_kubeconfig(old)) != _server(text)


def _kubeconfig(plain: Mapping[str, Any]) -> Any:
    """Return the text of the kubeconfig, which may be given as a path, with its current context.

    The engine's default provider takes KUBECONFIG's file.
    """
    given = plain.get("kubeconfig")
    if isinstance(given, Unknown):
        return given
    text, context = given or _content(os.environ.get("KUBECONFIG", "")), plain.get("context")
    text = _content(str(given)) or text
    if not context or not text:
        return text
    try:
        document = yaml.safe_load(text)
        return json.dumps(document | {"current-context": context})
    except (yaml.YAMLError, TypeError):
        return text  # whoever reads it reports what is wrong


def _content(path: str) -> str | None:
    """Return the text of a file; `~` is the home folder. None where there is no such file."""
    file = Path(path).expanduser()
    try:
        return file.read_text(encoding="utf-8") if path and file.is_file() else None
    except OSError:  # a text is too long for a file's name
        return None


def _server(kubeconfig: Any) -> tuple[str, str]:
    """Return the address and the certificate authority of the current context's cluster."""
    try:
        document = yaml.load(kubeconfig, Loader=LOADER)  # noqa: S506 (it is safe)
        contexts = {entry["name"]: entry["context"] for entry in document["contexts"]}
        clusters = {entry["name"]: entry["cluster"] for entry in document["clusters"]}
        cluster = clusters[contexts[document["current-context"]]["cluster"]]
        authority = cluster.get("certificate-authority-data") or cluster.get("certificate-authority") or ""
        return str(cluster["server"]).rstrip("/"), str(authority)
    except (yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        raise ProviderError(f"the provider's `kubeconfig` is not the text of a kubeconfig: {error!r}") from None
