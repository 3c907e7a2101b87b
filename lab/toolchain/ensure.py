"""Tools of the lab, each from the cheapest place: cached, released, built.

Missing tools are made one after the other: released ones where their sites answer, else built.
"""

import os
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from berth.components.core.words import counted
from berth.lab.errors import USAGE, LabError
from berth.lab.progress import LabProgress, duration
from berth.lab.toolchain import go, releases
from berth.lab.toolchain.cache import Cache, default_folder, defect
from berth.lab.toolchain.releases import UnavailableError
from berth.lab.toolchain.tools import Tool

CHOICE = "BERTH_LAB_TOOLS"
"""Environment variable: `release` or `source`. By default releases where their sites answer."""

RELEASE = "release"
SOURCE = "source"


def programs_of(tools: Iterable[Tool], progress: LabProgress) -> dict[str, Path]:
    """Return every program and copied file of some tools, by name; the missing ones are made.

    Raises:
        LabError: a tool cannot be built, a release is demanded that cannot be had, or a file is
            another one than the published one.
    """
    chosen = _choice()
    cache = Cache(default_folder(), progress)
    needed = list(tools)
    found = {tool: _entry(tool, cache, chosen) for tool in needed}
    entries = {tool: path for tool, path in found.items() if path is not None}
    missing = [tool for tool in needed if tool not in entries]
    if missing:
        with tempfile.TemporaryDirectory(
            prefix="berth-tools-", ignore_cleanup_errors=True
        ) as folder:
            if chosen != SOURCE:
                entries |= _fetch(missing, cache, chosen, Path(folder))
            if built := [tool for tool in missing if tool not in entries]:
                entries |= _build(built, cache, Path(folder))
    return {
        name: entries[tool] / name
        for tool in needed
        for name in (*tool.programs, *tool.copied.values())
    }


def _choice() -> str:
    """Return `release`, `source`, or an empty text where the lab decides."""
    value = os.environ.get(CHOICE, "")
    if value not in ("", RELEASE, SOURCE):
        raise LabError(
            f"{CHOICE} is {value!r}: no tool is fetched or built",
            f"set {CHOICE} to `{RELEASE}` or `{SOURCE}`, or unset it",
            code=USAGE,
        )
    return value


def _entry(tool: Tool, cache: Cache, chosen: str) -> Path | None:
    """Return the cache entry of a tool, built or released as chosen; None if there is none."""
    keys = [go.key(tool)] if chosen != RELEASE or not tool.release else []
    keys += [releases.key(tool.release)] if chosen != SOURCE and tool.release else []
    paths = [cache.path(tool.name, entry) for entry in keys]
    return next((path for path in paths if defect(path) is None), None)


def _fetch(tools: list[Tool], cache: Cache, chosen: str, folder: Path) -> dict[Tool, Path]:
    """Fetch the released tools whose sites answer; return their entries.

    Raises:
        LabError: a release is demanded and does not come, or a file is not the published one.
    """
    checksums, reasons = _checksums([tool for tool in tools if tool.release])
    none = (
        f"No release site answers here ({next(iter(reasons.values()), '')}): the tools are built"
        " from source"
    )
    _report(reasons, cache.progress, chosen, "" if checksums else none)
    if checksums:
        title = (
            f"{counted(len(checksums), 'tool')} from their release sites (kept in {cache.folder})"
        )
        cache.progress.say(f"Fetching {title}")
    entries: dict[Tool, Path] = {}
    late: dict[Tool, str] = {}
    with cache.progress.step("", "") as step:
        for number, tool in enumerate(checksums, 1):
            step.show(f"{tool.name} {tool.version} ({number} of {len(checksums)})")
            install = partial(_install, tool, checksums[tool], folder)
            try:
                entries[tool] = cache.obtain(tool.name, releases.key(tool.release), install)
            except UnavailableError as error:
                late[tool] = str(error)
        step.done = f"{counted(len(entries), 'tool')} fetched" if entries else ""
    _report(late, cache.progress, chosen)
    return entries


def _build(tools: list[Tool], cache: Cache, folder: Path) -> dict[Tool, Path]:
    """Build tools; Go uses all cores for each. Return their entries."""
    progress = cache.progress
    count = counted(len(tools), "tool")
    done = 0
    total = sum(tool.seconds for tool in tools)
    title = (
        f"{count} from source, once for this machine: about"
        f" {counted(max(1, round(total / 60)), 'minute')}"
    )
    progress.say(f"Building {title} of two cores (kept in {cache.folder})")
    compiler = go.find([tool.directory for tool in tools], cache)
    progress.say(f"  go {compiler.version}: {compiler.origin}")
    compiler.require_space(tools, cache.folder)
    entries = {}
    began = time.monotonic()
    with compiler.in_use(), compiler.fetching(tools), progress.step("", f"{count} built") as step:
        for number, tool in enumerate(tools, 1):
            pace = (time.monotonic() - began + 120) / (
                done + 120
            )  # the first tools alone would mislead
            part = f"{number} of {len(tools)}, about {duration(pace * (total - done))} left"
            step.show(f"{tool.name} {tool.version} ({part})")
            entries[tool] = cache.obtain(
                tool.name, go.key(tool), partial(compiler.build, tool, temporary=folder)
            )
            done += tool.seconds
    return entries


def _checksums(tools: list[Tool]) -> tuple[dict[Tool, dict[str, str]], dict[Tool, str]]:
    """Return the published checksums of tools by address, and why the others have none."""
    texts = releases.texts(file.checksums for tool in tools for file in tool.release)
    found: dict[Tool, dict[str, str]] = {}
    reasons: dict[Tool, str] = {}
    for tool in tools:
        checksums = {}
        for file in tool.release:
            text = texts[file.checksums]
            if isinstance(text, UnavailableError):
                reasons[tool] = str(text)
            elif checksum := releases.published(text, file.name):
                checksums[file.address] = checksum
            else:
                reasons[tool] = f"{releases.located(file.checksums)} has no checksum of {file.name}"
        if tool not in reasons:
            found[tool] = checksums
    return found, reasons


def _report(reasons: dict[Tool, str], progress: LabProgress, chosen: str, none: str = "") -> None:
    """Say which releases cannot be had; `none` is the text for all of them."""
    if not reasons:
        return
    tool, reason = next(iter(reasons.items()))
    if chosen == RELEASE:
        raise LabError(
            f"the release of {tool.name} {tool.version} cannot be downloaded, but {CHOICE} requires"
            f" it: {reason}",
            f"check the connection, or build the tools from source: unset {CHOICE}",
        )
    names = ", ".join(tool.name for tool in reasons)
    progress.say(none or f"No release of {names} can be downloaded here ({reason})")


def _install(tool: Tool, checksums: dict[str, str], folder: Path, entry: Path) -> None:
    """Put the released programs of a tool into its entry; tools can share a downloaded file."""
    for file in tool.release:
        checksum = checksums[file.address]
        target = folder / f"{checksum[:16]}-{file.name}"
        if not target.exists():
            releases.fetch(file.address, checksum, target)
        releases.unpack(target, file.members, entry)
