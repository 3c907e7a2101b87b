"""Existing cluster, by one context of a kubeconfig in one text."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import yaml

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem
from berth.components.gke import ExistingCluster
from berth.stacks.load import SettingsError
from berth.stacks.stack_file import StackFile, project, shown

# Keys of files in a kubeconfig, with the key for the file's content.
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


@dataclass(frozen=True)
class Platform:
    """Cluster for an environment's operators and RayClusters.

    Attributes:
        kubeconfig: kubeconfig as text; secret.
        cluster_id: id for the cluster's whole life; another id recreates everything on the cluster.
        ready: resources that come before anything on the cluster, and go after it.
    """

    kubeconfig: pulumi.Output[str]
    cluster_id: pulumi.Input[str]
    ready: Sequence[pulumi.Resource] = ()


class KubeconfigError(BadInputError):
    """Kubeconfig that cannot be used; `key` is the wrong setting: `kubeconfig` or `context`."""

    def __init__(self, text: str, key: str = "kubeconfig") -> None:
        super().__init__(text)
        self.key = key


def existing(stack: str, settings: ExistingCluster, file: StackFile | None) -> Platform:
    """Return the platform of an existing cluster.

    Its id is the API server's address, which is known without asking the server.

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
    """Return one context of a kubeconfig as JSON, and the address of its API server.

    The JSON has no credentials of other clusters and names no files, so that it works on another
    machine: it becomes an output of the stack, for engineers' stacks. Default: the current context.

    Raises:
        KubeconfigError: the kubeconfig cannot be used.
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
            f"{shown(path)}: context {name!r} names cluster {cluster_name!r}, which has no address there"
        )
    if user is None:
        raise KubeconfigError(f"{shown(path)}: context {name!r} names user {user_name!r}, who is not there")
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
            f"there is no file {shown(path)}; write one, for example: KUBECONFIG={shown(path)} gcloud container"
            " clusters get-credentials CLUSTER --location LOCATION --project PROJECT"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{shown(path)} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise KubeconfigError(f"{shown(path)} is not a kubeconfig: it is not YAML{line}") from None
    if not isinstance(config, dict) or not isinstance(config.get("clusters"), list):
        raise KubeconfigError(f"{shown(path)} is not a kubeconfig: it has no list of clusters")
    return config


def _named(config: dict[str, Any], key: str, inner: str) -> dict[str, dict[str, Any]]:
    """Return a kubeconfig's list of named entries as a mapping, without malformed ones."""
    entries = config.get(key)
    return {
        str(entry["name"]): entry[inner] or {}
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and "name" in entry and isinstance(entry.get(inner) or {}, dict) and inner in entry
    }


def _without_files(part: dict[str, Any], config: Path) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a cluster or user with the content of files beside the kubeconfig."""
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
