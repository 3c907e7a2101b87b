"""Making of missing tools, one after the other: released where their sites answer, else built."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from berth.components.core.words import counted
from berth.lab.errors import LabError
from berth.lab.toolchain import build, compiler, download
from berth.lab.toolchain.download import UnavailableError
from berth.lab.toolchain.releases import CHOICE, RELEASE, SOURCE, key, published

if TYPE_CHECKING:
    from collections.abc import Callable

    from berth.lab.progress import Progress
    from berth.lab.toolchain.cache import Cache
    from berth.lab.toolchain.tools import Tool

_MIB = 1 << 20


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
    with tempfile.TemporaryDirectory(prefix="berth-tools-", ignore_cleanup_errors=True) as folder:
        fetched = [] if chosen == SOURCE else _fetch(tools, cache, progress, chosen, Path(folder))
        if built := [tool for tool in tools if tool not in fetched]:
            _build(built, cache, progress, Path(folder))


def _fetch(tools: list[Tool], cache: Cache, progress: Progress, chosen: str, folder: Path) -> list[Tool]:
    """Fetch the released tools whose sites answer; return them.

    Raises:
        LabError: a release is demanded and does not come, or a file is not the published one.
    """
    checksums, reasons = _probe([tool for tool in tools if tool.release])
    _report(reasons, bool(checksums), progress, chosen)
    if checksums:
        progress.say(f"Fetching {counted(len(checksums), 'tool')} from their release sites (kept in {cache.folder})")
    late: dict[Tool, str] = {}
    for position, tool in enumerate(checksums, 1):
        install = partial(_install, tool, checksums[tool], Path(folder))
        try:
            _one(
                tool,
                f"{position}/{len(checksums)}",
                "released",
                progress,
                partial(cache.obtain, tool.name, key(tool.release), install),
            )
        except UnavailableError as error:
            late[tool] = str(error)
    _report(late, True, progress, chosen)  # noqa: FBT003
    return [tool for tool in checksums if tool not in late]


def _build(tools: list[Tool], cache: Cache, progress: Progress, folder: Path) -> None:
    """Build tools; Go uses all cores for each."""
    progress.say(f"Building {counted(len(tools), 'tool')} from source, once for this machine (kept in {cache.folder})")
    go = compiler.find([tool.directory for tool in tools], cache)
    progress.say(f"  go {go.version}: {go.origin}")
    builder = build.Builder(go, folder)
    builder.require_space(tools, cache.folder)
    with go.in_use():
        for position, tool in enumerate(tools, 1):
            make = partial(builder.build, tool)
            _one(
                tool,
                f"{position}/{len(tools)}",
                "built",
                progress,
                partial(cache.obtain, tool.name, build.key(tool), make),
            )


def _one(tool: Tool, position: str, how: str, progress: Progress, obtain: Callable[[], Path]) -> None:
    """Make one tool, with a line that has its size and its time at the end."""
    title = f"{tool.name} {tool.version}: {tool.purpose}"
    with progress.step(f"{position} {title}", title) as step:
        folder = obtain()
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        step.done = f"{title}; {how}, {size / _MIB:.0f} MiB"


def _probe(tools: list[Tool]) -> tuple[dict[Tool, dict[str, str]], dict[Tool, str]]:
    """Return the published checksums of tools by address, and why the others have none."""
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
        raise LabError(
            f"the release of {tool.name} {tool.version} cannot be downloaded, but {CHOICE} requires it: {reason}",
            f"check the connection, or build the tools from source: unset {CHOICE}",
        )
    if some:
        progress.say(f"No release of {', '.join(tool.name for tool in reasons)} can be downloaded here ({reason})")
    else:
        progress.say(f"No release site answers here ({reason}): the tools are built from source")


def _install(tool: Tool, checksums: dict[str, str], folder: Path, entry: Path) -> None:
    """Put the released programs of a tool into its entry; tools can share a downloaded file."""
    for file in tool.release:
        checksum = checksums[file.address]
        target = folder / f"{checksum[:16]}-{file.name}"
        if not target.exists():
            download.fetch(file.address, checksum, target)
        download.unpack(target, file.members, entry)
