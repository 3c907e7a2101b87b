"""All tools of the lab, each from the place that costs least: installed, cached, built."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.lab.progress import duration
from berth.lab.toolchain import build, compiler, installed
from berth.lab.toolchain.cache import Cache, default_folder
from berth.lab.toolchain.tools import PULUMI, PULUMI_PYTHON, REAL_NODE_TOOLS, TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from berth.lab.home import Home
    from berth.lab.progress import Progress
    from berth.lab.toolchain.build import Builder
    from berth.lab.toolchain.tools import Tool


@dataclass(frozen=True)
class Toolchain:
    """What the lab runs.

    Attributes:
        programs: program name to file. Installed ones are not among them: they are on PATH already.
        crds: folder with the custom resource definitions of the KubeRay operator that was built.
        found: installed programs that are used instead of built ones, by name.
    """

    programs: dict[str, Path]
    crds: Path
    found: dict[str, installed.Installed]

    def program(self, name: str) -> Path:
        """Where a program is, installed or built."""
        return self.programs[name] if name in self.programs else self.found[name].path


@contextlib.contextmanager
def _fetching(builder: Builder, tools: list[Tool]) -> Iterator[None]:
    """Download what the later tools are built from while the earlier ones compile, one after the other."""
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
    """Every program that the lab needs, built if need be.

    Raises:
        LabError: no compiler, no network, no room, or a build that fails.
    """
    cache = Cache(default_folder(), progress.say)
    excluded = (home.bin.resolve(),)
    found = {tool.name: there for tool in TOOLS if (there := installed.find(tool, excluded)) is not None}
    wanted = [tool for tool in TOOLS if tool.name not in found and not (tool is PULUMI_PYTHON and PULUMI.name in found)]
    for tool in TOOLS:
        if tool.name in found:
            there = found[tool.name]
            progress.say(f"  {tool.name} {there.version}: {tool.purpose}: yours, {there.path}")
    missing = [tool for tool in wanted if not cache.holds(tool.name, build.key(tool))]
    if missing:
        _build(missing, cache, progress)
    folders = {tool.name: cache.path(tool.name, build.key(tool)) for tool in wanted}
    programs = {name: folders[tool.name] / name for tool in wanted for name in tool.programs}
    programs |= {item.target: folders[tool.name] / item.target for tool in wanted for item in tool.copied}
    return Toolchain(programs=programs, crds=programs.pop("crds"), found=found)


def real_node_programs(progress: Progress) -> dict[str, Path]:
    """Every program that only a real node needs, by name, built if need be.

    Raises:
        LabError: as `ensure`.
    """
    return programs_of(REAL_NODE_TOOLS, progress)


def programs_of(tools: Iterable[Tool], progress: Progress) -> dict[str, Path]:
    """Every program of some tools, by name, built if need be.

    Raises:
        LabError: as `ensure`.
    """
    wanted = list(tools)
    cache = Cache(default_folder(), progress.say)
    missing = [tool for tool in wanted if not cache.holds(tool.name, build.key(tool))]
    if missing:
        _build(missing, cache, progress)
    return {name: cache.path(tool.name, build.key(tool)) / name for tool in wanted for name in tool.programs}


def _build(tools: list[Tool], cache: Cache, progress: Progress) -> None:
    total = sum(tool.seconds for tool in tools)
    progress.heading(
        f"Building {len(tools)} tools from source, once for this machine "
        f"(about {duration(total)} on two cores; kept in {cache.folder})"
    )
    go = compiler.find([tool.directory for tool in tools], cache, progress)
    progress.say(f"  go {go.version}: {go.origin}")
    builder = build.Builder(go)
    builder.require_space(tools, cache.folder)
    with _fetching(builder, tools[1:]):
        for position, tool in enumerate(tools, 1):
            title = f"{tool.name} {tool.version}: {tool.purpose}"
            doing = f"{position}/{len(tools)} {title}; building, about {duration(tool.seconds)}"
            with progress.step(doing, title):
                cache.obtain(tool.name, build.key(tool), functools.partial(builder.build, tool))
