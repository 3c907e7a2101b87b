"""Tools of the lab, each from the cheapest place: installed, cached, built."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.components.core.words import counted
from berth.lab.progress import duration
from berth.lab.toolchain import build, compiler, installed
from berth.lab.toolchain.cache import Cache, default_folder, defect
from berth.lab.toolchain.tools import PULUMI, PULUMI_PYTHON, TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from berth.lab.home import Home
    from berth.lab.progress import Progress
    from berth.lab.toolchain.build import Builder
    from berth.lab.toolchain.tools import Tool


@dataclass(frozen=True)
class Toolchain:
    """Programs that the lab runs.

    Attributes:
        programs: program name to file, of those that were built.
        crds: folder with the custom resource definitions of the KubeRay operator that was built.
        found: installed programs that are used instead of built ones, by name.
    """

    programs: dict[str, Path]
    crds: Path
    found: dict[str, installed.Installed]

    def program(self, name: str) -> Path:
        """Return the path of a program, installed or built."""
        return self.programs[name] if name in self.programs else self.found[name].path


@contextlib.contextmanager
def _fetching(builder: Builder, tools: list[Tool]) -> Iterator[None]:
    """Download the modules of later tools, one after the other, while the earlier tools compile."""
    stop = threading.Event()
    current: list[subprocess.Popen[bytes]] = []

    def fetch() -> None:
        for tool in tools:
            if stop.is_set():
                return
            current[:] = [builder.fetch(tool)]
            current[0].wait()

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        for process in current:
            process.terminate()
        thread.join()


def ensure(home: Home, progress: Progress) -> Toolchain:
    """Return every program that the lab needs; the missing ones are built."""
    excluded = (home.bin.resolve(),)
    found = {}
    for tool in TOOLS:
        if there := installed.find(tool, excluded):
            found[tool.name] = there
            progress.say(f"  {tool.name} {there.version}: {tool.purpose}: yours, {there.path}")
    # An installed Pulumi has its language host beside it.
    covered = {*found, *([PULUMI_PYTHON.name] if PULUMI.name in found else [])}
    programs = programs_of([tool for tool in TOOLS if tool.name not in covered], progress)
    return Toolchain(programs=programs, crds=programs.pop("crds"), found=found)


def programs_of(tools: Iterable[Tool], progress: Progress) -> dict[str, Path]:
    """Return every program and copied file of some tools, by name; the missing ones are built."""
    cache = Cache(default_folder(), progress)
    folders = {tool: cache.path(tool.name, build.key(tool)) for tool in tools}
    if missing := [tool for tool, folder in folders.items() if defect(folder) is not None]:
        _build(missing, cache, progress)
    return {name: folder / name for tool, folder in folders.items() for name in (*tool.programs, *tool.copied.values())}


def _build(tools: list[Tool], cache: Cache, progress: Progress) -> None:
    progress.say(
        f"Building {counted(len(tools), 'tool')} from source, once for this machine "
        f"(about {duration(sum(tool.seconds for tool in tools))} on two cores; kept in {cache.folder})"
    )
    go = compiler.find([tool.directory for tool in tools], cache)
    progress.say(f"  go {go.version}: {go.origin}")
    builder = build.Builder(go)
    builder.require_space(tools, cache.folder)
    with _fetching(builder, tools[1:]):
        for position, tool in enumerate(tools, 1):
            title = f"{tool.name} {tool.version}: {tool.purpose}"
            doing = f"{position}/{len(tools)} {title}; building, about {duration(tool.seconds)}"
            cache.obtain(tool.name, build.key(tool), functools.partial(builder.build, tool), doing, title)
