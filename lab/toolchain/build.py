"""Building one tool with Go."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from berth.lab.errors import LabError
from berth.lab.toolchain.failures import GIB, explain, require_space

if TYPE_CHECKING:
    from berth.lab.toolchain.compiler import Go
    from berth.lab.toolchain.tools import Tool

SPACE = 1 * GIB
"""Disk space that one tool takes while it is built: modules, compiled packages, programs (the largest, roughly)."""


def key(tool: Tool) -> str:
    """Hash of everything that decides what a build of the tool gives: sources, flags, platform."""
    recipe = {
        "programs": dict(tool.programs),
        "linker": tool.linker_flags,
        "copied": [(item.source, item.target) for item in tool.copied],
        "platform": [platform.system(), platform.machine()],
    }
    if tool.tags:
        recipe["tags"] = tool.tags
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode())
    for path in (tool.directory / "go.mod", tool.directory / "go.sum", *sorted(tool.directory.rglob("*.go"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Builder:
    """Compiles tools.

    Attributes:
        go: the compiler.
    """

    go: Go

    def _run(self, tool: Tool, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.go.program, *arguments],
            cwd=tool.directory,
            env=self.go.environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    def require_space(self, tools: list[Tool], cache: Path) -> None:
        """Check every folder that building these tools fills.

        Raises:
            LabError: one of them is on a disk without enough room.
        """
        answer = self._run(tools[0], "env", "GOCACHE", "GOMODCACHE").stdout.split("\n")
        for folder in {cache, *(Path(line) for line in answer if line)}:
            require_space(folder, SPACE * len(tools), f"building {len(tools)} tools")

    def fetch(self, tool: Tool) -> subprocess.Popen[bytes]:
        """Start downloading what a tool is built from; a failure shows when it is built."""
        return subprocess.Popen(
            [self.go.program, "list", "-deps", "-f", "{{.Dir}}", *tool.programs.values()],
            cwd=tool.directory,
            env=self.go.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def build(self, tool: Tool, folder: Path) -> None:
        """Fill a folder with the tool's programs and what belongs beside them.

        Raises:
            LabError: no network, a full disk, or a build that fails for another reason.
        """
        packages = sorted(tool.programs.values())
        result = self._run(
            tool,
            "build",
            "-trimpath",
            "-buildvcs=false",
            f"-ldflags={tool.linker_flags}",
            *([f"-tags={tool.tags}"] if tool.tags else []),
            "-o",
            f"{folder}/",
            *packages,
        )
        if result.returncode != 0:
            raise explain(f"{tool.name} {tool.version}", result.stderr, folder)
        for name, package in tool.programs.items():
            built = folder / _program_name(package)
            if built.name != name:
                built.rename(folder / name)
        for item in tool.copied:
            self._copy(tool, item.source, folder / item.target)

    def _copy(self, tool: Tool, source: str, target: Path) -> None:
        result = self._run(tool, "list", "-m", "-f", "{{.Dir}}", tool.module)
        path = Path(result.stdout.strip()) / source
        if result.returncode != 0 or not path.exists():
            raise LabError(
                f"{tool.module} {tool.version} has no {source}",
                f"this pin in {tool.directory / 'go.mod'} can't be used by the lab",
            )
        if path.is_dir():
            # Go's module folders are read-only; only the bytes are wanted.
            shutil.copytree(path, target, copy_function=shutil.copyfile)
            target.chmod(0o755)
        else:
            shutil.copyfile(path, target)
            target.chmod(0o755)


def _program_name(package: str) -> str:
    """The name that Go gives a package's program: its last part that is no major version."""
    last = package.rsplit("/", 1)[-1]
    if last.startswith("v") and last[1:].isdigit():
        return package.rsplit("/", 2)[-2]
    return last
