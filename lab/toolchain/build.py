"""Build of one tool with Go."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from berth.components.core.words import counted
from berth.lab.errors import LabError
from berth.lab.toolchain.failures import GIB, explain, require_space

if TYPE_CHECKING:
    from berth.lab.toolchain.compiler import Go
    from berth.lab.toolchain.tools import Tool

SPACE = 1 * GIB
"""Disk space of one tool's build: modules, compiled packages, programs (of the largest tool,
roughly)."""

SHARED_FLAGS = ("-trimpath", "-buildvcs=false", "-pgo=off", "-gcflags=all=-dwarf=false")
"""Flags of every build, the same for all tools: Go compiles a package that several tools need once.

The compiler writes no debug tables, which the linker would drop; the programs are the same.
"""


def key(tool: Tool) -> str:
    """Return a hash of everything that decides the result of a build: sources, flags, platform."""
    recipe = {
        "programs": dict(tool.programs),
        "linker": tool.linker_flags,
        "copied": list(tool.copied.items()),
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
    """Compiler of tools, by a given Go.

    Attributes:
        go: the compiler.
        temporary: folder of Go's own temporary files, which Go leaves behind when it is ended.
    """

    go: Go
    temporary: Path | None = None

    def _run(self, tool: Tool, *arguments: str) -> subprocess.CompletedProcess[str]:
        with subprocess.Popen(
            [str(self.go.program), *arguments],
            cwd=tool.directory,
            env=self.go.environment() | ({"GOTMPDIR": str(self.temporary)} if self.temporary else {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                output, errors = process.communicate()
            finally:
                # After Ctrl-C; what is compiled stays in Go's cache.
                process.terminate()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def require_space(self, tools: list[Tool], cache: Path) -> None:
        """Check every folder that building these tools fills."""
        folders = self._run(tools[0], "env", "GOCACHE", "GOMODCACHE").stdout.split("\n")
        for folder in {cache, *map(Path, filter(None, folders))}:
            require_space(folder, SPACE * len(tools), f"building {counted(len(tools), 'tool')}")

    def build(self, tool: Tool, folder: Path) -> None:
        """Fill an empty folder with the tool's programs and the files beside them."""
        flags = [*SHARED_FLAGS, f"-ldflags={tool.linker_flags}"]
        flags += [f"-tags={tool.tags}"] if tool.tags else []
        result = self._run(tool, "build", *flags, "-o", f"{folder}/", *sorted(tool.programs.values()))
        if result.returncode != 0:
            raise explain(f"{tool.name} {tool.version}", result.stderr, folder)
        for name, package in tool.programs.items():
            built = folder / _program_name(package)
            if built.name != name:
                built.rename(folder / name)
        for source, target in tool.copied.items():
            self._copy(tool, source, folder / target)

    def _copy(self, tool: Tool, source: str, target: Path) -> None:
        result = self._run(tool, "list", "-m", "-f", "{{.Dir}}", tool.module)
        path = Path(result.stdout.strip()) / source
        if result.returncode != 0 or not path.exists():
            raise LabError(
                f"{tool.module} {tool.version} has no {source}",
                f"the lab cannot use the version pinned in {tool.directory / 'go.mod'}",
            )
        if path.is_dir():
            shutil.copytree(path, target, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(path, target)
        target.chmod(0o755)  # Go's module folders are read-only


def _program_name(package: str) -> str:
    """Return Go's name of a package's program: the last part that is not a major version."""
    parts = package.split("/")
    versioned = parts[-1].startswith("v") and parts[-1][1:].isdigit()
    return parts[-2] if versioned else parts[-1]
