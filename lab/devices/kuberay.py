"""Flags and variables that a KubeRay operator's Deployment sets for the program that stands in for its container.

Answers to (real): KubeRay's operator v1.6.2, whose program gets the arguments and variables that its Deployment says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from berth.lab.home import CLONE

if TYPE_CHECKING:
    from collections.abc import Mapping

_MODULE = re.compile(r"^\s*(?:require )?github\.com/ray-project/kuberay/ray-operator (v\S+)", re.MULTILINE)

# Flags that name addresses, files and identities of the container: the lab gives its own. A single process needs no
# election of a leader.
_OURS = {
    "config",
    "enable-leader-election",
    "health-probe-bind-address",
    "kubeconfig",
    "leader-election-namespace",
    "log-file-path",
    "log-file-encoder",
    "metrics-addr",
}

# Would open a port on all addresses, for webhooks that no API server calls here.
_LEFT_OUT_VARIABLES = {"ENABLE_WEBHOOKS"}


@dataclass(frozen=True)
class Launch:
    """The operator as a process.

    Attributes:
        arguments: the container's flags that make sense outside of it.
        environment: the container's variables, sorted by name.
    """

    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


class WrongVersionError(Exception):
    """The Deployment asks for a version that the lab hasn't built."""


def built_version() -> str:
    """The version of KubeRay that the lab builds, such as `v1.6.2`.

    Raises:
        OSError: when the tools' module files are not there.
        ValueError: when KubeRay is not among the requirements.
    """
    file = CLONE / "lab" / "tools" / "kuberay" / "go.mod"
    match = _MODULE.search(file.read_text())
    if match is None:
        raise ValueError(f"{file} does not require KubeRay's operator")
    return match[1]


def operator_container(deployment: Mapping[str, Any]) -> dict[str, Any] | None:
    """The container that runs the KubeRay operator, if the Deployment has one."""
    for container in deployment["spec"]["template"]["spec"].get("containers") or []:
        repository, _ = split_image(str(container.get("image", "")))
        if repository.endswith("/operator") and "kuberay" in repository:
            return dict(container)
    return None


def split_image(image: str) -> tuple[str, str]:
    """Repository and tag of an image reference; a digest is no tag."""
    image = image.split("@", 1)[0]
    repository, colon, tag = image.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (image, "")


def wanted(deployment: Mapping[str, Any], version: str) -> Launch | None:
    """How to run the operator that a Deployment asks for; nothing while it should not, or cannot yet, run.

    A pod has to be available: an operator whose pod is unschedulable does not work in a real cluster either.

    Raises:
        WrongVersionError: when the image is of another version than the lab's.
    """
    container = operator_container(deployment)
    if container is None or int(deployment["spec"].get("replicas", 1)) < 1:
        return None
    _, tag = split_image(str(container["image"]))
    if tag.removeprefix("v") != version.removeprefix("v"):
        raise WrongVersionError(
            f"the lab runs the KubeRay operator as a local program and has built {version} only; "
            f"{container['image']} is not run. Set the image's tag to {version}"
        )
    if int((deployment.get("status") or {}).get("availableReplicas") or 0) < 1:
        return None
    metadata = deployment["metadata"]
    return Launch(_arguments(container.get("args") or []), _environment(container.get("env") or [], metadata))


def _arguments(arguments: list[str]) -> tuple[str, ...]:
    """The flags as `-name=value`, without those that are the lab's to set."""
    kept: list[str] = []
    rest = [str(argument) for argument in arguments]
    while rest:
        name, equals, value = rest.pop(0).lstrip("-").partition("=")
        if not equals and rest and not rest[0].startswith("-"):
            equals, value = "=", rest.pop(0)
        if name not in _OURS:
            kept.append(f"-{name}{equals}{value}")
    return tuple(kept)


def _environment(variables: list[dict[str, Any]], metadata: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Plain values, and the two facts about the pod that are known without one."""
    facts = {"metadata.namespace": str(metadata["namespace"]), "metadata.name": str(metadata["name"])}
    found = {}
    for variable in variables:
        field = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
        if field in facts:
            found[str(variable["name"])] = facts[field]
        elif "valueFrom" not in variable:
            found[str(variable["name"])] = str(variable.get("value") or "")
    return tuple(sorted((name, value) for name, value in found.items() if name not in _LEFT_OUT_VARIABLES))
