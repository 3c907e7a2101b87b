"""SSH to a berth's pods, through the API server."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.logins import run_attached
from berth.cli.reach.named_berth import berth_and_stack
from berth.cli.reach.pods import running_pod
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
        if self.worker is None:
            return f"berth-{self.berth}"
        return f"berth-{self.berth}-worker-{self.worker.replace('/', '-')}"


def ssh_target(name: str | None, stack: str | None, worker: str | None, user: str) -> SshTarget:
    """Return the pod that arguments name, by the stacks' files.

    Raises:
        BadInputError: no berth is named, or no stack or several stacks have it.
    """
    return SshTarget(*berth_and_stack(name, stack), worker, user)


def ssh_folder() -> Path:
    """Return the folder of berth's key and of its part of ssh's configuration."""
    return Path.home() / ".ssh" / "berth"


def ssh_program(name: str) -> str:
    """Return the path of a program of OpenSSH.

    Raises:
        BerthError: it is not installed.
    """
    path = shutil.which(name)
    if path is None:
        raise BerthError(
            f"{name} is not on PATH",
            "install OpenSSH's client, on Debian with: sudo apt install openssh-client",
        )
    return path


def public_key() -> str:
    """Return berth's public key on this machine, made at the first use.

    The key alone opens nothing: a connection needs the right to run commands in the berth's pods.
    """
    path = ssh_folder() / "id_ed25519"
    if not path.exists():
        ssh_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        options = ["-q", "-t", "ed25519", "-N", "", "-C", "berth", "-f", str(path)]
        command = [ssh_program("ssh-keygen"), *options]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path.with_suffix(".pub").read_text(encoding="utf-8").strip()


def ssh_options(target: SshTarget) -> dict[str, str]:
    """Return the options of ssh_config(5) that reach a pod from any folder."""
    return {
        "HostName": target.host,
        "User": target.user,
        "IdentityFile": str(ssh_folder() / "id_ed25519"),
        "IdentitiesOnly": "yes",
        # The API server authenticates the pod, by its certificate. The pod makes a new host key for
        # each connection.
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "ServerAliveInterval": "30",
        "ProxyCommand": _proxy_command(target).replace("%", "%%"),
    }


def _proxy_command(target: SshTarget) -> str:
    """Return the command that connects an SSH client to a pod, from any folder."""
    berth = Path(sys.argv[0])
    program = str(berth) if berth.is_absolute() else "berth"
    words = [program, "ssh", target.berth, "--stack", target.stack, "--proxy"]
    if target.worker:
        words += ["--worker", target.worker]
    here = project_folder().resolve()
    command = f"cd {shlex.quote(str(here))} && exec {shlex.join(words)}"
    return f"sh -c {shlex.quote(command)}"


def run_ssh(target: SshTarget, command: Sequence[str]) -> int:
    """Become OpenSSH's client, connected to a pod.

    Raises:
        BerthError: the pod is not ready, or OpenSSH is not installed.
    """
    running_pod(_live_berth(target), target.worker)
    client = ssh_program("ssh")
    public_key()
    words = [client, *(f"-o{key}={value}" for key, value in ssh_options(target).items())]
    if command:
        words += [target.host, "--", *command]
    elif sys.stdin.isatty():
        # A login shell reads /etc/profile, which sets another PATH than the image's.
        words += ["-t", target.host, 'exec "$SHELL"']
    else:
        words.append(target.host)
    sys.stdout.flush()
    os.execv(client, words)  # noqa: S606 - no shell is needed


def run_proxy(target: SshTarget) -> int:
    """Connect an SSH client on the standard streams to a server in a pod; return the exit code."""
    server = Path(ssh_server.__file__).read_text(encoding="utf-8")
    command = ["python", "-c", server, public_key()]
    return run_attached(_live_berth(target), target.worker, command)


def _live_berth(target: SshTarget) -> LiveBerth:
    berth = live_berth(target.berth, target.stack)
    if any(map(berth.is_simulated, berth.pods("head"))):
        raise BerthError(
            f"{berth.name} is in the lab, whose heads have no SSH server",
            f"berth exec {berth.name}",
        )
    return berth
