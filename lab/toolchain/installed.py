"""Programs that the machine has already: used instead of building, where they are new enough."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from berth.lab.toolchain.compiler import numbers
from berth.lab.toolchain.tools import HELM, KUBECTL, PULUMI

if TYPE_CHECKING:
    from berth.lab.toolchain.tools import Tool

HELM_MAJOR = 3
HELM_MINIMUM = (3, 8)
"""The first Helm 3 with OCI registries switched on."""

KUBECTL_SKEW = 1
"""Minor versions that kubectl may be older than the API server (Kubernetes' version skew policy)."""


@dataclass(frozen=True)
class Installed:
    """A program found on PATH.

    Attributes:
        version: its version, without the leading v.
        path: where it is.
    """

    version: str
    path: Path


def _search_path(excluded: tuple[Path, ...]) -> str:
    """PATH without the folders that hold only what we built ourselves."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder and Path(folder).resolve() not in excluded)


def _ask(path: str, *arguments: str) -> str:
    try:
        return subprocess.run(
            [path, *arguments], capture_output=True, text=True, check=True, timeout=20, stdin=subprocess.DEVNULL
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _version(tool: Tool, path: str) -> str:
    if tool is PULUMI:
        return _ask(path, "version").removeprefix("v")
    if tool is HELM:
        return _ask(path, "version", "--template", "{{.Version}}").removeprefix("v")
    try:
        return str(json.loads(_ask(path, "version", "--client", "--output=json"))["clientVersion"]["gitVersion"])[1:]
    except (ValueError, KeyError, TypeError):
        return ""


def _good_enough(tool: Tool, version: str) -> bool:
    have, pinned = numbers(version), numbers(tool.version)
    if tool is HELM:
        return have[0] == HELM_MAJOR and have >= HELM_MINIMUM
    if tool is KUBECTL:
        return have[0] == pinned[0] and have[1] >= pinned[1] - KUBECTL_SKEW
    return have >= pinned


def find(tool: Tool, excluded: tuple[Path, ...] = ()) -> Installed | None:
    """A program on PATH that does what the tool is for.

    Args:
        tool: `PULUMI`, `HELM` or `KUBECTL`; the others are always built.
        excluded: folders not to look in (the lab's own `bin`, which may come first on PATH), resolved.
    """
    if tool not in (PULUMI, HELM, KUBECTL):
        return None
    search = _search_path(excluded)
    path = shutil.which(tool.name, path=search)
    if path is None:
        return None
    version = _version(tool, path)
    if len(numbers(version)) < 2 or not _good_enough(tool, version):  # noqa: PLR2004 - at least major and minor
        return None
    if tool is PULUMI and shutil.which("pulumi-language-python", path=search) is None:
        return None  # an engine that can't run Python programs
    return Installed(version, Path(path))


def plugin(kind: str, version: str, excluded: Path, *more: Path) -> Path | None:
    """A resource plugin in Pulumi's own plugin folder, of the version that the SDK asks for.

    A folder with a `.partial` file beside it is an installation that has not ended, or never will.

    Args:
        kind: for example `kubernetes`.
        version: without the leading v.
        excluded: the lab's own Pulumi folder, which `PULUMI_HOME` names in a shell that uses the lab.
        more: other folders that Pulumi fills, looked into last.
    """
    named = os.environ.get("PULUMI_HOME")
    home = Path(named) if named and Path(named).resolve() != excluded.resolve() else Path.home() / ".pulumi"
    for each in (home, *more):
        folder = each / "plugins" / f"resource-{kind}-v{version}"
        partial = folder.with_name(f"{folder.name}.partial")
        if (folder / f"pulumi-resource-{kind}").is_file() and not partial.exists():
            return folder
    return None
