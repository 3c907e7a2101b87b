"""A cluster that is there already, by its kubeconfig: one context of it, with all that it needs in one text."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import yaml

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem
from berth.components.gke import ExistingCluster
from berth.stacks.load import SettingsError
from berth.stacks.platforms import Platform
from berth.stacks.stack_file import StackFile, project, shown

# Where a kubeconfig names a file, the key under which its content may stand instead.
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


class KubeconfigError(BadInputError):
    """A kubeconfig that is missing or cannot be used.

    Attributes:
        key: setting that is wrong: `kubeconfig` or `context`.
    """

    def __init__(self, text: str, key: str = "kubeconfig") -> None:
        super().__init__(text)
        self.key = key


def existing(stack: str, settings: ExistingCluster, file: StackFile | None) -> Platform:
    """The platform that an existing cluster is.

    Its id is the API server's address: known without asking it, and the same for everyone who reaches it by that address.

    Args:
        stack: the stack's name.
        settings: which kubeconfig, and which context of it.
        file: where the settings were written, for lines in errors.

    Raises:
        SettingsError: the kubeconfig cannot be used.
    """
    try:
        text, server = one_context(project() / Path(settings.kubeconfig).expanduser(), settings.context)
    except KubeconfigError as error:
        problem = Problem(("environment", "cluster", "existing", error.key), str(error))
        raise SettingsError(stack, [problem], file) from None
    return Platform(pulumi.Output.secret(text), server)


def one_context(path: Path, context: str | None) -> tuple[str, str]:
    """One context of a kubeconfig, without the credentials of any other cluster, and without files that it names.

    So it works from another folder and on another machine: it goes into the stack's outputs, for engineers' stacks.

    Args:
        path: the kubeconfig's file.
        context: the context's name; None for the current one.

    Returns:
        The kubeconfig as JSON, and the address of the API server.

    Raises:
        KubeconfigError: it cannot be used.
    """
    config = _read(path)
    name = context or config.get("current-context")
    contexts = _named(config, "contexts", "context")
    known = ", ".join(sorted(contexts)) or "none"
    if not name:
        raise KubeconfigError(
            f"{shown(path)} has no current context; name one of its contexts with `context` ({known})", key="context"
        )
    if name not in contexts:
        raise KubeconfigError(
            f"{shown(path)} has no context {name!r}{did_you_mean(str(name), contexts)}; it has: {known}",
            key="context" if context else "kubeconfig",
        )
    cluster_name, user_name = contexts[name].get("cluster"), contexts[name].get("user")
    cluster = _named(config, "clusters", "cluster").get(str(cluster_name))
    user = _named(config, "users", "user").get(str(user_name))
    if not cluster or not cluster.get("server"):
        raise KubeconfigError(
            f"{shown(path)}: context {name!r} is of cluster {cluster_name!r}, whose address is not there"
        )
    if user is None:
        raise KubeconfigError(f"{shown(path)}: context {name!r} is of user {user_name!r}, who is not there")
    flat = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster_name, "cluster": dict(_without_files(cluster, path))}],
        "users": [{"name": user_name, "user": dict(_without_files(user, path))}],
        "contexts": [{"name": name, "context": contexts[name]}],
        "current-context": name,
    }
    return json.dumps(flat), str(cluster["server"])


def _read(path: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise KubeconfigError(
            f"there is no file {shown(path)}; write one, for example: KUBECONFIG={shown(path)} gcloud container clusters"
            " get-credentials CLUSTER --location LOCATION --project PROJECT"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{shown(path)} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise KubeconfigError(f"{shown(path)} is no kubeconfig: it is no YAML{line}") from None
    if not isinstance(config, dict) or not isinstance(config.get("clusters"), list):
        raise KubeconfigError(f"{shown(path)} is no kubeconfig: it has no list of clusters")
    return config


def _named(config: dict[str, Any], key: str, inner: str) -> dict[str, dict[str, Any]]:
    """A kubeconfig's list of named things as a mapping; what is malformed is left out."""
    entries = config.get(key)
    return {
        str(each["name"]): each[inner] or {}
        for each in (entries if isinstance(entries, list) else [])
        if isinstance(each, dict) and "name" in each and isinstance(each.get(inner) or {}, dict) and inner in each
    }


def _without_files(part: dict[str, Any], config: Path) -> Iterator[tuple[str, Any]]:
    """The entries of a cluster or user, each file replaced by its content; paths count from the kubeconfig's folder."""
    for key, value in part.items():
        if key not in _FILES:
            yield key, str(config.parent / value) if key == "tokenFile" else value
        elif not part.get(_FILES[key]):
            file = config.parent / str(value)
            try:
                yield _FILES[key], base64.b64encode(file.read_bytes()).decode()
            except OSError as error:
                raise KubeconfigError(
                    f"{shown(config)} names {shown(file)}, which cannot be read: {error.strerror}"
                ) from None
