"""`berth ssh`: a shell or a command in a berth, and the transport that every SSH client uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from berth.cli.reach.berths import find, which
from berth.cli.reach.pods import attached, pod_of
from berth.cli.reach.ssh.client import Place, options, program, public_key
from berth.components.programs import ssh_server

DISCONNECTED = 255
"""Exit code of OpenSSH's client for a connection that breaks or is refused, ssh(1)."""


def place_of(name: str | None, stack: str | None, worker: str | None, user: str) -> Place:
    """Return the pod that arguments name, by the stacks' files.

    Raises:
        BadInputError: there is no such berth or stack, or the name is ambiguous.
    """
    named = which(name, stack)
    return Place(named.name, named.stack, worker, user)


def ssh(place: Place, command: Sequence[str]) -> int:
    """Become OpenSSH's client, connected to a pod.

    Raises:
        BerthError: the pod is not ready, or OpenSSH is not installed.
    """
    pod_of(find(place.berth, place.stack), place.worker)
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
    return attached(find(place.berth, place.stack), place.worker, ["python", "-c", server, public_key()])
