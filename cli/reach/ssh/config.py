"""`berth ssh-config` and `berth code`: hosts of berths in the user's own configuration of ssh."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from berth.cli.reach.ssh.client import Place, folder, options, program, public_key
from berth.cli.shell.console import err, out, print_result
from berth.components.core import whole_file
from berth.components.core.errors import BerthError

_HEADING = "# Written by `berth ssh-config`, which replaces a host's block and keeps the others.\n"
_INCLUDE = "Include berth/config"
_BLOCK = re.compile(r"^Host (\S+)\n(?:[ \t]+.*\n)*", re.MULTILINE)


def block(place: Place) -> str:
    """Return a host's block of ssh_config(5)."""
    lines = [f"    {key} {value}" for key, value in options(place).items()]
    return "\n".join([f"Host {place.host}", *lines, ""])


def add(place: Place) -> Path:
    """Add a host to the user's configuration, or replace it; return the file with its block.

    Raises:
        OSError: a file cannot be written.
    """
    program("ssh")
    public_key()
    file = folder() / "config"
    _write_blocks(file, _blocks(file) | {place.host: block(place)})
    users = folder().parent / "config"
    text = users.read_text(encoding="utf-8") if users.exists() else ""
    if _INCLUDE not in (line.strip() for line in text.splitlines()):
        # Before the first host: inside of a host's block it would count for that host alone.
        _write(users, f"{_INCLUDE}\n\n{text}" if text else f"{_INCLUDE}\n")
        err.print(f"added to {users}: {_INCLUDE}")
    return file


def ssh_config(place: Place, *, only_print: bool, remove_it: bool, as_json: bool) -> int:
    """Write, print or remove the block of a host; return the exit code."""
    if only_print:
        out.print(block(place), end="")
        return 0
    if remove_it:
        file = folder() / "config"
        blocks = _blocks(file)
        there = blocks.pop(place.host, None) is not None
        if there:
            _write_blocks(file, blocks)
        err.print(f"removed host {place.host}" if there else f"there was no host {place.host}")
        return 0
    file = add(place)
    host = place.host
    document = {"host": host, "file": str(file), "options": options(place)}
    lines = [f"ssh {host}", f"rsync -a src/ {host}:src/", f"code --remote ssh-remote+{host}"]
    text = "\n  ".join([f"host {host} is in {file}. Now these work:\n", *lines])
    return print_result(document, text, as_json=as_json)


def code(place: Place, editor: str, where: str) -> int:
    """Open a folder of a pod in an editor on this machine; return the editor's exit code."""
    add(place)
    address = f"ssh-remote+{place.host}"
    try:
        return subprocess.run([editor, "--remote", address, where], check=False).returncode
    except FileNotFoundError:
        raise BerthError(
            f"{editor} is not on PATH; in the editor's Remote-SSH, choose host {place.host}, or open"
            f" vscode://vscode-remote/{address}{where}"
        ) from None


def _blocks(file: Path) -> dict[str, str]:
    """Return the blocks of berth's own file by host."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return {found[1]: found[0] for found in _BLOCK.finditer(text)}


def _write_blocks(file: Path, blocks: Mapping[str, str]) -> None:
    _write(file, _HEADING + "\n" + "\n".join(blocks[host] for host in sorted(blocks)))


def _write(file: Path, text: str) -> None:
    """Replace a file of the user at once, readable by nobody else; a link stays a link."""
    target = file.resolve()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole_file.write(target, text, mode=0o600)
