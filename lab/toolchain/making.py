"""Making of missing tools: released programs where their sites answer, builds of the others."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from berth.components.core.words import counted
from berth.lab.errors import LabError
from berth.lab.progress import duration
from berth.lab.toolchain import build, compiler, crew, download
from berth.lab.toolchain.download import UnavailableError
from berth.lab.toolchain.estimate import Estimate, roughly
from berth.lab.toolchain.releases import CHOICE, RELEASE, SOURCE, key, published

if TYPE_CHECKING:
    from berth.lab.progress import Progress
    from berth.lab.toolchain.cache import Cache
    from berth.lab.toolchain.releases import ReleasedFile
    from berth.lab.toolchain.tools import Tool

DOWNLOADS = 3
"""Downloads at the same time."""


def make(tools: list[Tool], cache: Cache, progress: Progress, chosen: str) -> None:
    """Make tools that the cache does not have.

    Args:
        tools: the tools, in the order in which they are built.
        cache: where they are kept.
        progress: lines for people.
        chosen: `release`, `source`, or an empty text: releases where their sites answer.

    Raises:
        LabError: a tool cannot be built, a release is demanded that cannot be had, or a file is
            another one than the published one.
    """
    checksums: dict[Tool, dict[str, str]] = {}
    if chosen != SOURCE:
        checksums, reasons = _probe([tool for tool in tools if tool.release])
        _report(reasons, bool(checksums), progress, chosen)
    with tempfile.TemporaryDirectory(prefix="berth-tools-", ignore_cleanup_errors=True) as folder:
        _Making(cache, progress, chosen, Path(folder), checksums).run(tools)


def _probe(tools: list[Tool]) -> tuple[dict[Tool, dict[str, str]], dict[Tool, str]]:
    """Return the published checksums of tools, and why the others have none."""
    texts = download.texts(file.checksums for tool in tools for file in tool.release)
    found: dict[Tool, dict[str, str]] = {}
    reasons: dict[Tool, str] = {}
    for tool in tools:
        checksums = {}
        for file in tool.release:
            text = texts[file.checksums]
            if isinstance(text, UnavailableError):
                reasons[tool] = str(text)
            elif checksum := published(text, file.name):
                checksums[file.address] = checksum
            else:
                reasons[tool] = f"{download.located(file.checksums)} has no checksum of {file.name}"
        if tool not in reasons:
            found[tool] = checksums
    return found, reasons


def _report(reasons: dict[Tool, str], some: bool, progress: Progress, chosen: str) -> None:  # noqa: FBT001
    if not reasons:
        return
    tool, reason = next(iter(reasons.items()))
    if chosen == RELEASE:
        raise _demanded(tool, reason)
    if some:
        progress.say(f"No release of {', '.join(tool.name for tool in reasons)} can be downloaded here ({reason})")
    else:
        progress.say(f"No release site answers here ({reason}): the tools are built from source")


def _demanded(tool: Tool, reason: str) -> LabError:
    return LabError(
        f"the release of {tool.name} {tool.version} cannot be downloaded, but {CHOICE} requires it: {reason}",
        f"check the connection, or build the tools from source: unset {CHOICE}",
    )


@dataclass
class _Making:
    """One run that makes tools.

    Attributes:
        cache: where the tools are kept.
        progress: lines for people.
        chosen: `release`, `source` or nothing.
        folder: temporary folder of Go's and of downloaded files, which several tools can share.
        checksums: published checksums by address, for each tool that has a release.
        unavailable: tools whose release did not arrive, and the reasons.
        busy: one download of a file at a time.
    """

    cache: Cache
    progress: Progress
    chosen: str
    folder: Path
    checksums: dict[Tool, dict[str, str]]
    unavailable: dict[Tool, str] = field(default_factory=dict)
    busy: threading.Lock = field(default_factory=threading.Lock)
    locks: dict[str, threading.Lock] = field(default_factory=dict)

    def run(self, tools: list[Tool]) -> None:
        """Fetch and build tools at the same time; what could not be fetched is built after that."""
        fetched = [tool for tool in tools if tool in self.checksums]
        built = [tool for tool in tools if tool not in self.checksums]
        self._announce(fetched, built)
        self._work(fetched, built)
        if self.unavailable:
            late = [tool for tool in tools if tool in self.unavailable]
            _report(self.unavailable, True, self.progress, self.chosen)  # noqa: FBT003
            self._announce([], late)
            self._work([], late)

    def _announce(self, fetched: list[Tool], built: list[Tool]) -> None:
        folder = f"kept in {self.cache.folder}"
        cores = os.cpu_count() or 1
        time = f"{roughly(Estimate(built).left())} on {counted(cores, 'core')}"
        if not fetched:
            self.progress.say(
                f"Building {counted(len(built), 'tool')} from source, once for this machine ({time}; {folder})"
            )
        elif not built:
            self.progress.say(f"Fetching {counted(len(fetched), 'tool')} from their release sites ({folder})")
        else:
            self.progress.say(
                f"Fetching {counted(len(fetched), 'tool')} from their release sites, and building {len(built)} from"
                f" source, once for this machine ({time}; {folder})"
            )

    def _work(self, fetched: list[Tool], built: list[Tool]) -> None:
        downloads = deque(fetched)
        lanes = [crew.Lane(downloads, self._fetch) for _ in range(min(DOWNLOADS, len(fetched)))]
        builder: build.Builder | None = None
        if built:
            go = compiler.find([tool.directory for tool in built], self.cache)
            self.progress.say(f"  go {go.version}: {go.origin}")
            builder = build.Builder(go, self.folder)
            builder.require_space(built, self.cache.folder)
            lanes += self._builders(builder, built)
        estimate, position = Estimate(built), 0
        total = len(fetched) + len(built)

        def report(what: str, tool: Tool) -> None:
            nonlocal position
            title = f"{tool.name} {tool.version}: {tool.purpose}"
            from_source = tool in built
            if what == "started":
                position += 1
                estimate.started(tool)
                if from_source:
                    self.progress.begun(f"{position}/{total} {title}; building")
                return
            took = duration(estimate.finished(tool))
            if tool in self.unavailable:
                return
            rest = f"; {estimate}" if built else ""
            self.progress.done(title, f"{took}{rest}" if from_source else f"released, {took}")

        def line() -> str:
            doing = ", ".join(tool.name for tool in estimate.building) or "modules"
            return f"{doing}; {estimate}" if built else doing

        with builder.go.in_use() if builder else contextlib.nullcontext(), self.progress.line(line):
            crew.run(lanes, builder.stop if builder else lambda: None, report)

    def _builders(self, builder: build.Builder, tools: list[Tool]) -> list[crew.Lane]:
        """Return lanes: one builds, one uses the time that the first leaves idle, one downloads."""
        queue = deque(tools)

        def build_one(tool: Tool, *, patient: bool = False) -> None:
            self.cache.obtain(tool.name, build.key(tool), lambda folder: builder.build(tool, folder, patient=patient))

        first = crew.Lane(queue, build_one)
        lanes = [first, crew.Lane(deque(tools[1:]), builder.fetch, quiet=True)]
        if len(tools) > 1:
            lanes.append(crew.Lane(queue, lambda tool: build_one(tool, patient=True), after=first))
        return lanes

    def _fetch(self, tool: Tool) -> None:
        try:
            self.cache.obtain(tool.name, key(tool.release), lambda folder: self._install(tool, folder))
        except UnavailableError as error:
            self.unavailable[tool] = str(error)

    def _install(self, tool: Tool, folder: Path) -> None:
        for file in tool.release:
            download.unpack(self._downloaded(file, self.checksums[tool][file.address]), file.members, folder)

    def _downloaded(self, file: ReleasedFile, checksum: str) -> Path:
        """Return a downloaded file; of tools that share it, the first one downloads it."""
        with self.busy:
            lock = self.locks.setdefault(file.address, threading.Lock())
        with lock:
            target = self.folder / f"{checksum[:16]}-{file.name}"
            if not target.exists():
                download.fetch(file.address, checksum, target)
            return target
