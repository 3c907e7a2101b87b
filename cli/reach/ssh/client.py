"""OpenSSH on this machine: the key, and the options with which it reaches a berth."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from berth.components.core.errors import BerthError
from berth.stacks.files import stack_file

USER = "ray"
"""User of Ray's images, https://github.com/ray-project/ray/blob/ray-2.60.0/docker/base-deps/Dockerfile."""


@dataclass(frozen=True)
class Place:
    """Pod of a berth that SSH leads to.

    Attributes:
        berth: the engineer's id or the cluster's name.
        stack: a stack that leads to its environment.
        worker: the worker, counted from 1 by name, `2` or `gpu/2`; None for the head.
        user: user of the container.
    """

    berth: str
    stack: str
    worker: str | None = None
    user: str = USER

    @property
    def host(self) -> str:
        """Name of the host for ssh, scp, rsync and editors."""
        return f"berth-{self.berth}" + (f"-worker-{self.worker.replace('/', '-')}" if self.worker else "")


def folder() -> Path:
    """Return the folder of berth's key and of its part of ssh's configuration."""
    return Path.home() / ".ssh" / "berth"


def program(name: str) -> str:
    """Return the path of a program of OpenSSH.

    Raises:
        BerthError: it is not installed.
    """
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
