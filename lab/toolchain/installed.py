"""Installed programs, used in place of built ones where they are new enough."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from berth.lab.toolchain.tools import HELM, KUBECTL, PULUMI, numbers

if TYPE_CHECKING:
    from berth.lab.toolchain.tools import Tool

HELM_MAJOR = 3
HELM_MINIMUM = (3, 8)
"""First Helm 3 with OCI registries switched on."""

KUBECTL_SKEW = 1
"""Minor versions that kubectl may be older than the API server (Kubernetes' version skew
policy)."""

_VERSION = {
    PULUMI.name: ("version",),
    HELM.name: ("version", "--template", "{{.Version}}"),
    KUBECTL.name: ("version", "--client", "--output=json"),
}
"""Arguments by which a program prints its version."""


@dataclass(frozen=True)
class Installed:
    """Program found on PATH: its version without the leading v, and its path."""

    version: str
    path: Path


def _version(name: str, path: str) -> str:
    try:
        command = [path, *_VERSION[name]]
        answer = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=20, stdin=subprocess.DEVNULL
        ).stdout.strip()
        if name == KUBECTL.name:
            answer = str(json.loads(answer)["clientVersion"]["gitVersion"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return ""
    return answer.removeprefix("v")


def _good_enough(tool: Tool, version: str) -> bool:
    found, pinned = numbers(version), numbers(tool.version)
    if len(found) < 2:  # noqa: PLR2004 - at least major and minor
        return False
    if tool is HELM:
        return found[0] == HELM_MAJOR and found >= HELM_MINIMUM
    if tool is KUBECTL:
        return found[0] == pinned[0] and found[1] >= pinned[1] - KUBECTL_SKEW
    return found >= pinned


def find(tool: Tool, excluded: tuple[Path, ...] = ()) -> Installed | None:
    """Return a program on PATH that can replace a tool.

    Args:
        tool: Pulumi, Helm or kubectl; the others are always built.
        excluded: resolved folders to leave out (the lab's own `bin`, which may come first on PATH).
    """
    if tool.name not in _VERSION:
        return None
    folders = os.environ.get("PATH", "").split(os.pathsep)
    search = os.pathsep.join(folder for folder in folders if folder and Path(folder).resolve() not in excluded)
    path = shutil.which(tool.name, path=search)
    if path is None or not _good_enough(tool, version := _version(tool.name, path)):
        return None
    if tool is PULUMI and shutil.which("pulumi-language-python", path=search) is None:
        return None  # an engine that cannot run Python programs
    return Installed(version, Path(path))
