"""Hosts of berths in the user's configuration of SSH."""

import re
from collections.abc import Mapping
from pathlib import Path

from berth.cli.reach.ssh import SshTarget, public_key, ssh_folder, ssh_options, ssh_program
from berth.cli.shell.console import err, out, print_result
from berth.components.core import whole_file

_HEADING = "# Written by `berth ssh-config`, which replaces a host's block and keeps the others.\n"
_INCLUDE = "Include berth/config"
_BLOCK = re.compile(r"^Host (\S+)\n(?:[ \t]+.*\n)*", re.MULTILINE)


def print_host(target: SshTarget) -> int:
    """Print the block of a host, and write nothing; return the exit code."""
    out.print(host_block(target), end="")
    return 0


def write_host(target: SshTarget, *, as_json: bool) -> int:
    """Write the block of a host, and print what works now; return the exit code."""
    file = add_host(target)
    host = target.host
    document = {"host": host, "file": str(file), "options": ssh_options(target)}
    lines = [f"ssh {host}", f"rsync -a src/ {host}:src/", f"code --remote ssh-remote+{host}"]
    text = "\n  ".join([f"host {host} is in {file}. Now these work:\n", *lines])
    return print_result(document, text, as_json=as_json)


def remove_host(target: SshTarget) -> int:
    """Remove the block of a host, if it is there; return the exit code."""
    file = ssh_folder() / "config"
    blocks = _blocks(file)
    if target.host not in blocks:
        err.print(f"there was no host {target.host}")
        return 0
    del blocks[target.host]
    _write_blocks(file, blocks)
    err.print(f"removed host {target.host}")
    return 0


def host_block(target: SshTarget) -> str:
    """Return a host's block of ssh_config(5)."""
    lines = [f"    {key} {value}" for key, value in ssh_options(target).items()]
    return "\n".join([f"Host {target.host}", *lines, ""])


def add_host(target: SshTarget) -> Path:
    """Add a host to the user's configuration, or replace it; return the file with its block.

    Raises:
        BerthError: OpenSSH is not installed.
    """
    ssh_program("ssh")
    public_key()
    file = ssh_folder() / "config"
    _write_blocks(file, _blocks(file) | {target.host: host_block(target)})
    users = ssh_folder().parent / "config"
    text = users.read_text(encoding="utf-8") if users.exists() else ""
    if _INCLUDE not in (line.strip() for line in text.splitlines()):
        # Before the first host: inside of a host's block it would count for that host alone.
        _write(users, f"{_INCLUDE}\n\n{text}" if text else f"{_INCLUDE}\n")
        err.print(f"added to {users}: {_INCLUDE}")
    return file


def _blocks(file: Path) -> dict[str, str]:
    """Return the blocks of a file, by their hosts."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return {block[1]: block[0] for block in _BLOCK.finditer(text)}


def _write_blocks(file: Path, blocks: Mapping[str, str]) -> None:
    _write(file, _HEADING + "\n" + "\n".join(blocks[host] for host in sorted(blocks)))


def _write(file: Path, text: str) -> None:
    """Replace a file of the user at once, readable by nobody else; a link stays a link."""
    target = file.resolve()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole_file.replace_file(target, text, mode=0o600)
