"""Choice of a lab's kubernetes plugin: Pulumi's own where it can be had, else the stand-in.

The engine takes a plugin from a folder only, never from a link to one, and none with a `.partial`
file beside it (https://github.com/pulumi/pulumi, sdk/go/common/workspace/plugins.go, tryPlugin and
GetPluginsFromDir, v3.250.0). So the files of an installed plugin are linked into a folder of the
lab, under a `.partial` file until all of them are there, as the engine's own installation does
(pkg/pluginstorage/download.go).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from berth.lab.errors import USAGE, LabError
from berth.lab.locking import exclusive
from berth.lab.toolchain import installed
from berth.lab.toolchain.cache import default_folder

if TYPE_CHECKING:
    from berth.lab.home import Home
    from berth.lab.progress import Progress

CHOICE = "BERTH_LAB_KUBERNETES_PLUGIN"
"""Environment variable: `real` or `stand-in`. By default the real plugin where it can be had."""

NAME = "kubernetes"
PROGRAM = f"pulumi-resource-{NAME}"

SILENCE_SECONDS = 15.0
"""Time without a byte after which a download is given up."""

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Plugin:
    """Plugin of a lab: the folder of the real one, or None and the reason for the stand-in."""

    folder: Path | None
    reason: str = ""

    def __str__(self) -> str:
        """Return the choice for people."""
        if self.folder is None:
            return f"a stand-in of the lab's{f': {self.reason}' if self.reason else ''}"
        return f"the real one, {self.folder}"


def wanted_version() -> str:
    """Return the version that the installed SDK needs."""
    return version("pulumi-kubernetes")


def folder_name() -> str:
    """Return the name of the plugin's folder among Pulumi's plugins."""
    return f"resource-{NAME}-v{wanted_version()}"


def choose(home: Home, engine: Path, progress: Progress, silence: float = SILENCE_SECONDS) -> Plugin:
    """Return a lab's plugin: an installed one, else one that the engine fetches, else the stand-in.

    A refusal is remembered for the engine and the plugin's version, so that a machine without
    network waits once.

    Raises:
        LabError: `CHOICE` demands the real plugin, which cannot be had, or has an unknown value.
    """
    choice = os.environ.get(CHOICE, "")
    if choice not in ("", "real", "stand-in"):
        raise LabError(
            f"{CHOICE} is {choice!r}: no plugin is chosen, and nothing was started",
            f"set {CHOICE} to `real` or `stand-in`, or unset it",
            code=USAGE,
        )
    if choice == "stand-in":
        return Plugin(None, f"{CHOICE} asks for it")
    own = default_folder().parent / "pulumi"
    with exclusive(own / "lock", lambda: progress.say("waiting for another lab that is downloading Pulumi's plugin")):
        found = _found(home, own)
        if found is not None:
            return Plugin(found)
        reason = "" if choice == "real" else _remembered(own, engine)
        if not reason:
            named = f"Pulumi's {NAME} plugin {wanted_version()}"
            with progress.step(f"fetching {named}", f"fetched {named}") as step:
                reason = _fetch(engine, own, silence)
                if reason:
                    step.done = f"{named} cannot be fetched here: the lab's stand-in takes its place"
            found = _found(home, own)
            if found is not None:
                return Plugin(found)
            reason = reason or "the engine fetched something else"
            _note(own).write_text(json.dumps({"asked": _question(engine), "reason": reason}))
    if choice == "real":
        raise LabError(
            f"Pulumi's {NAME} plugin {wanted_version()} cannot be downloaded, but {CHOICE} requires it: {reason}",
            f"run `pulumi plugin install resource {NAME} {wanted_version()}` where there is a network, or unset"
            f" {CHOICE}",
        )
    return Plugin(None, f"{reason}; `pulumi plugin install resource {NAME} {wanted_version()}` installs the real one")


def place(plugin: Plugin, home: Home) -> None:
    """Link the files of a real plugin into a folder of the lab, where its engine looks."""
    if plugin.folder is None:
        return
    target = home.pulumi_home / "plugins" / folder_name()
    files = {path.relative_to(plugin.folder): path for path in plugin.folder.rglob("*") if path.is_file()}
    if not target.is_symlink() and _links(target) == files:
        return
    partial = target.with_name(f"{target.name}.partial")
    partial.touch()
    remove(target)
    for name, path in files.items():
        link = target / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    partial.unlink()


def remove(path: Path) -> None:
    """Remove a folder, a file, or a link but not its target."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def placed(home: Home) -> Plugin:
    """Return the plugin that the lab's engine will load."""
    program = home.pulumi_home / "plugins" / folder_name() / PROGRAM
    return Plugin(program.readlink().parent) if program.is_symlink() else Plugin(None)


def _links(folder: Path) -> dict[Path, Path]:
    paths = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return {path.relative_to(folder): path.readlink() if path.is_symlink() else path for path in paths}


def _found(home: Home, own: Path) -> Path | None:
    return installed.plugin(NAME, wanted_version(), home.pulumi_home, own)


def _note(own: Path) -> Path:
    return own / "refused.json"


def _question(engine: Path) -> str:
    return f"{NAME} {wanted_version()} by {engine.resolve()}"


def _remembered(own: Path, engine: Path) -> str:
    try:
        note = json.loads(_note(own).read_text())
        return str(note["reason"]) if note["asked"] == _question(engine) else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _fetch(engine: Path, own: Path, silence: float) -> str:
    """Have the engine install the plugin in the PULUMI_HOME `own`; return why it did not, or ""."""
    with tempfile.TemporaryDirectory(prefix="berth-plugin-") as temporary:
        environment = os.environ | {"PULUMI_HOME": str(own), "TMPDIR": temporary, "PULUMI_SKIP_UPDATE_CHECK": "true"}
        log = Path(temporary) / "log"
        # Not in a project's folder: the engine would read its packages.
        with log.open("w") as output:
            process = subprocess.Popen(
                [str(engine), "plugin", "install", "resource", NAME, wanted_version(), "--color", "never"],
                cwd=temporary,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            if not _finished(process, [Path(temporary), own / "plugins"], log, silence):
                return f"no data arrived within {silence:g} seconds"
        finally:
            process.kill()
            process.wait()
        if process.returncode == 0:
            return ""
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        # The engine's prefix is "error: [resource plugin kubernetes-4.34.2] downloading from : ".
        if not lines:
            return f"pulumi exited with code {process.returncode}"
        return lines[-1].rpartition(" downloading from : ")[2].removeprefix("error: ")


def _finished(process: subprocess.Popen[bytes], folders: list[Path], log: Path, silence: float) -> bool:
    """Return whether a process ends while files other than its log grow in its folders."""
    size, deadline = -1, time.monotonic() + silence
    while process.poll() is None:
        now = sum(_size(path) for folder in folders for path in folder.rglob("*") if path != log)
        if now > size:
            size, deadline = now, time.monotonic() + silence
        elif time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size if path.is_file() else 0
    except OSError:  # removed meanwhile
        return 0
