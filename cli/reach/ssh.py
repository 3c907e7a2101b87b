"""SSH to a berth's pods, through the API server: `berth ssh`, `berth ssh-config`, `berth code`."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from berth.cli.reach.berths import LiveBerth, berth_and_stack, live_berth
from berth.cli.reach.logins import run_attached
from berth.cli.reach.pods import running_pod
from berth.cli.shell.console import err, out, print_result
from berth.components.core import whole_file
from berth.components.core.errors import BerthError
from berth.components.core.project import project_folder
from berth.components.programs import ssh_server

USER = "ray"
"""User of Ray's images, https://github.com/ray-project/ray/blob/ray-2.60.0/docker/base-deps/Dockerfile."""


@dataclass(frozen=True)
class SshTarget:
    """Pod of a berth that SSH leads to."""

    berth: str
    stack: str
    worker: str | None = None
    """The worker, counted from 1 by name, `2` or `gpu/2`; None for the head."""
    user: str = USER

    @property
    def host(self) -> str:
        """Name of the host for ssh, scp, rsync and editors."""
        return f"berth-{self.berth}" + (
            f"-worker-{self.worker.replace('/', '-')}" if self.worker else ""
        )


def ssh_folder() -> Path:
    """Return the folder of berth's key and of its part of ssh's configuration."""
    return Path.home() / ".ssh" / "berth"


def ssh_program(name: str) -> str:
    """Return the path of a program of OpenSSH."""
    path = shutil.which(name)
    if path is None:
        raise BerthError(
            f"{name} is not on PATH; install OpenSSH's client, on Debian with: sudo apt install"
            " openssh-client"
        )
    return path


def public_key() -> str:
    """Return berth's public key on this machine, made at the first use.

    The key alone opens nothing: a connection needs the right to run commands in the berth's pods.
    """
    path = ssh_folder() / "id_ed25519"
    if not path.exists():
        ssh_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [
            ssh_program("ssh-keygen"),
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-C",
            "berth",
            "-f",
            str(path),
        ]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path.with_suffix(".pub").read_text(encoding="utf-8").strip()


def ssh_options(place: SshTarget) -> dict[str, str]:
    """Return the options of ssh_config(5) that reach a pod from any folder."""
    here = project_folder().resolve()
    berth = Path(sys.argv[0])
    words = [
        str(berth) if berth.is_absolute() else "berth",
        "ssh",
        place.berth,
        "--stack",
        place.stack,
        "--proxy",
    ]
    if place.worker:
        words += ["--worker", place.worker]
    command = f"cd {shlex.quote(str(here))} && exec {shlex.join(words)}"
    return {
        "HostName": place.host,
        "User": place.user,
        "IdentityFile": str(ssh_folder() / "id_ed25519"),
        "IdentitiesOnly": "yes",
        # The API server authenticates the pod, by its certificate. The pod makes a new host key for
        # each connection.
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "ServerAliveInterval": "30",
        "ProxyCommand": f"sh -c {shlex.quote(command)}".replace("%", "%%"),
    }


def ssh_target(name: str | None, stack: str | None, worker: str | None, user: str) -> SshTarget:
    """Return the pod that arguments name, by the stacks' files."""
    return SshTarget(*berth_and_stack(name, stack), worker, user)


def _berth_of(place: SshTarget) -> LiveBerth:
    berth = live_berth(place.berth, place.stack)
    if any(map(berth.is_simulated, berth.pods("head"))):
        raise BerthError(
            f"{berth.name} is in the lab, whose heads have no SSH server",
            f"berth exec {berth.name}",
        )
    return berth


def run_ssh(place: SshTarget, command: Sequence[str]) -> int:
    """Become OpenSSH's client, connected to a pod."""
    running_pod(_berth_of(place), place.worker)
    client = ssh_program("ssh")
    public_key()
    words = [client, *(f"-o{key}={value}" for key, value in ssh_options(place).items())]
    if command:
        words += [place.host, "--", *command]
    elif sys.stdin.isatty():
        # A login shell reads /etc/profile, which sets another PATH than the image's.
        words += ["-t", place.host, 'exec "$SHELL"']
    else:
        words.append(place.host)
    sys.stdout.flush()
    os.execv(client, words)  # noqa: S606 - no shell is needed


def run_proxy(place: SshTarget) -> int:
    """Connect an SSH client on the standard streams to a server in a pod; return the exit code."""
    server = Path(ssh_server.__file__).read_text(encoding="utf-8")
    return run_attached(_berth_of(place), place.worker, ["python", "-c", server, public_key()])


_HEADING = "# Written by `berth ssh-config`, which replaces a host's block and keeps the others.\n"
_INCLUDE = "Include berth/config"
_BLOCK = re.compile(r"^Host (\S+)\n(?:[ \t]+.*\n)*", re.MULTILINE)


def host_block(place: SshTarget) -> str:
    """Return a host's block of ssh_config(5)."""
    lines = [f"    {key} {value}" for key, value in ssh_options(place).items()]
    return "\n".join([f"Host {place.host}", *lines, ""])


def add_host(place: SshTarget) -> Path:
    """Add a host to the user's configuration, or replace it; return the file with its block."""
    ssh_program("ssh")
    public_key()
    file = ssh_folder() / "config"
    _write_blocks(file, _blocks(file) | {place.host: host_block(place)})
    users = ssh_folder().parent / "config"
    text = users.read_text(encoding="utf-8") if users.exists() else ""
    if _INCLUDE not in (line.strip() for line in text.splitlines()):
        # Before the first host: inside of a host's block it would count for that host alone.
        _write(users, f"{_INCLUDE}\n\n{text}" if text else f"{_INCLUDE}\n")
        err.print(f"added to {users}: {_INCLUDE}")
    return file


def write_ssh_config(place: SshTarget, *, only_print: bool, remove_it: bool, as_json: bool) -> int:
    """Write, print or remove the block of a host; return the exit code."""
    if only_print:
        out.print(host_block(place), end="")
        return 0
    if remove_it:
        file = ssh_folder() / "config"
        blocks = _blocks(file)
        there = blocks.pop(place.host, None) is not None
        if there:
            _write_blocks(file, blocks)
        err.print(f"removed host {place.host}" if there else f"there was no host {place.host}")
        return 0
    file = add_host(place)
    host = place.host
    document = {"host": host, "file": str(file), "options": ssh_options(place)}
    lines = [f"ssh {host}", f"rsync -a src/ {host}:src/", f"code --remote ssh-remote+{host}"]
    text = "\n  ".join([f"host {host} is in {file}. Now these work:\n", *lines])
    return print_result(document, text, as_json=as_json)


def open_editor(place: SshTarget, editor: str, where: str) -> int:
    """Open a folder of a pod in an editor on this machine; return the editor's exit code."""
    add_host(place)
    address = f"ssh-remote+{place.host}"
    try:
        return subprocess.run([editor, "--remote", address, where], check=False).returncode
    except FileNotFoundError:
        raise BerthError(
            f"{editor} is not on PATH; in the editor's Remote-SSH, choose host {place.host}, or"
            f" open vscode://vscode-remote/{address}{where}"
        ) from None


def _blocks(file: Path) -> dict[str, str]:
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return {found[1]: found[0] for found in _BLOCK.finditer(text)}


def _write_blocks(file: Path, blocks: Mapping[str, str]) -> None:
    _write(file, _HEADING + "\n" + "\n".join(blocks[host] for host in sorted(blocks)))


def _write(file: Path, text: str) -> None:
    """Replace a file of the user at once, readable by nobody else; a link stays a link."""
    target = file.resolve()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole_file.replace_file(target, text, mode=0o600)
