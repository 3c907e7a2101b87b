"""OpenSSH on this machine: its key, its options, and the transport to a pod that it uses."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from berth.cli.reach.berths import Berth, find, which
from berth.cli.reach.pods import attached, pod_of
from berth.components.core.errors import BerthError
from berth.components.programs import ssh_server
from berth.stacks.files import stack_file

USER = "ray"
"""User of Ray's images, https://github.com/ray-project/ray/blob/ray-2.60.0/docker/base-deps/Dockerfile."""

DISCONNECTED = 255
"""Exit code of OpenSSH's client for a connection that breaks or is refused, ssh(1)."""


@dataclass(frozen=True)
class Place:
    """Pod of a berth that SSH leads to."""

    berth: str
    """The engineer's id or the cluster's name."""
    stack: str
    """A stack that leads to its environment."""
    worker: str | None = None
    """The worker, counted from 1 by name, `2` or `gpu/2`; None for the head."""
    user: str = USER

    @property
    def host(self) -> str:
        """Name of the host for ssh, scp, rsync and editors."""
        return f"berth-{self.berth}" + (f"-worker-{self.worker.replace('/', '-')}" if self.worker else "")


def folder() -> Path:
    """Return the folder of berth's key and of its part of ssh's configuration."""
    return Path.home() / ".ssh" / "berth"


def program(name: str) -> str:
    """Return the path of a program of OpenSSH."""
    path = shutil.which(name)
    if path is None:
        raise BerthError(
            f"{name} is not on PATH; install OpenSSH's client, on Debian with: sudo apt install openssh-client"
        )
    return path


def public_key() -> str:
    """Return berth's public key on this machine, made at the first use.

    The key alone opens nothing: a connection needs the right to run commands in the berth's pods.
    """
    path = folder() / "id_ed25519"
    if not path.exists():
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "berth", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path.with_suffix(".pub").read_text(encoding="utf-8").strip()


def options(place: Place) -> dict[str, str]:
    """Return the options of ssh_config(5) that reach a pod from any folder."""
    here = stack_file.project().resolve()
    berth = Path(sys.argv[0])
    words = [str(berth) if berth.is_absolute() else "berth", "ssh", place.berth, "--stack", place.stack, "--proxy"]
    if place.worker:
        words += ["--worker", place.worker]
    command = f"cd {shlex.quote(str(here))} && exec {shlex.join(words)}"
    return {
        "HostName": place.host,
        "User": place.user,
        "IdentityFile": str(folder() / "id_ed25519"),
        "IdentitiesOnly": "yes",
        # The API server authenticates the pod, by its certificate. The pod makes a new host key for
        # each connection.
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "ServerAliveInterval": "30",
        "ProxyCommand": f"sh -c {shlex.quote(command)}".replace("%", "%%"),
    }


def place_of(name: str | None, stack: str | None, worker: str | None, user: str) -> Place:
    """Return the pod that arguments name, by the stacks' files."""
    named = which(name, stack)
    return Place(named.name, named.stack, worker, user)


def _berth_of(place: Place) -> Berth:
    berth = find(place.berth, place.stack)
    if any(map(berth.is_simulated, berth.pods("head"))):
        raise BerthError(f"{berth.name} is in the lab, whose heads have no SSH server", f"berth exec {berth.name}")
    return berth


def ssh(place: Place, command: Sequence[str]) -> int:
    """Become OpenSSH's client, connected to a pod."""
    pod_of(_berth_of(place), place.worker)
    client = program("ssh")
    public_key()
    words = [client, *(f"-o{key}={value}" for key, value in options(place).items())]
    if command:
        words += [place.host, "--", *command]
    elif sys.stdin.isatty():
        # A login shell reads /etc/profile, which sets another PATH than the image's.
        words += ["-t", place.host, 'exec "$SHELL"']
    else:
        words.append(place.host)
    sys.stdout.flush()
    os.execv(client, words)  # noqa: S606 - no shell is needed


def proxy(place: Place) -> int:
    """Connect an SSH client on the standard streams to a server in a pod; return the exit code."""
    server = Path(ssh_server.__file__).read_text(encoding="utf-8")
    return attached(_berth_of(place), place.worker, ["python", "-c", server, public_key()])
