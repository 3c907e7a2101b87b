"""Tools of the lab, each from the cheapest place: installed, cached, released, built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.lab.toolchain import build, installed, making
from berth.lab.toolchain.cache import Cache, default_folder, defect
from berth.lab.toolchain.releases import RELEASE, SOURCE, choice, key
from berth.lab.toolchain.tools import PULUMI, PULUMI_PYTHON, TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from berth.lab.home import Home
    from berth.lab.progress import Progress
    from berth.lab.toolchain.tools import Tool


@dataclass(frozen=True)
class Toolchain:
    """Programs that the lab runs.

    Attributes:
        programs: program name to file, of those in the cache.
        crds: folder with the custom resource definitions of the KubeRay operator that was built.
        found: installed programs that are used instead of those, by name.
    """

    programs: dict[str, Path]
    crds: Path
    found: dict[str, installed.Installed]

    def program(self, name: str) -> Path:
        """Return the path of a program, installed or built."""
        return self.programs[name] if name in self.programs else self.found[name].path


def ensure(home: Home, progress: Progress) -> Toolchain:
    """Return every program that the lab needs; the missing ones are fetched or built."""
    excluded = (home.bin.resolve(),)
    found = {}
    for tool in TOOLS:
        if there := installed.find(tool, excluded):
            found[tool.name] = there
            progress.say(f"  {tool.name} {there.version}: {tool.purpose}: already installed, {there.path}")
    # An installed Pulumi has its language host beside it.
    covered = {*found, *([PULUMI_PYTHON.name] if PULUMI.name in found else [])}
    programs = programs_of([tool for tool in TOOLS if tool.name not in covered], progress)
    return Toolchain(programs=programs, crds=programs.pop("crds"), found=found)


def programs_of(tools: Iterable[Tool], progress: Progress) -> dict[str, Path]:
    """Return every program and copied file of some tools, by name; the missing ones are made."""
    chosen, cache = choice(), Cache(default_folder(), progress)
    needed = list(tools)
    entries = {tool: _entry(tool, cache, chosen) for tool in needed}
    if missing := [tool for tool, entry in entries.items() if entry is None]:
        making.make(missing, cache, progress, chosen)
    complete = {tool: entry or _entry(tool, cache, chosen) for tool, entry in entries.items()}
    return {
        name: folder / name
        for tool, folder in complete.items()
        if folder is not None
        for name in (*tool.programs, *tool.copied.values())
    }


def _entry(tool: Tool, cache: Cache, chosen: str) -> Path | None:
    """Return the cache entry of a tool, built or released as chosen; None if there is none."""
    keys = [build.key(tool)] if chosen != RELEASE or not tool.release else []
    keys += [key(tool.release)] if chosen != SOURCE and tool.release else []
    return next((path for path in (cache.path(tool.name, entry) for entry in keys) if defect(path) is None), None)
