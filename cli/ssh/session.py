"""`berth ssh`: a shell or a command in a berth, and the transport that every SSH client uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from berth.cli import logs
from berth.cli.berths import Berth, find, which
from berth.cli.connect import ready_head
from berth.cli.kubectl import kubectl
from berth.cli.running import HEAD_CONTAINER
from berth.cli.ssh.client import Place, options, program, public_key
from berth.cli.ssh.login import marked_as_used
from berth.components.cluster.pods import why_not_ready
from berth.components.core.errors import BerthError
from berth.components.programs import ssh_server

DISCONNECTED = 255
"""Exit code of OpenSSH's client for a connection that breaks or is refused, ssh(1)."""


def place_of(name: str | None, stack: str | None, worker: int | None, user: str) -> Place:
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
    berth = find(place.berth, place.stack)
    pod = pod_of(berth, place.worker)
    container = logs.WORKER_CONTAINER if place.worker else HEAD_CONTAINER
    where = ("--namespace", berth.namespace, pod, "--container", container)
    server = Path(ssh_server.__file__).read_text(encoding="utf-8")
    with marked_as_used(berth), kubectl(berth.environment.kubeconfig) as running:
        return running.attached("exec", "--stdin", *where, "--", "python", "-c", server, public_key())


def pod_of(berth: Berth, worker: int | None) -> str:
    """Return the name of a pod that runs."""
    if worker is None:
        return str(ready_head(berth)["metadata"]["name"])
    pod = logs.choose(berth, worker)
    name = str(pod["metadata"]["name"])
    if berth.is_simulated(pod):
        problem = f"pod {name} is on a simulated node: its containers never run"
        raise BerthError(problem, "make lab-real makes one node real, on Debian as root")
    if reason := why_not_ready(pod):
        problem = f"worker {worker} of {berth.name} is not ready: {reason}"
        raise BerthError(problem, f"berth status -s {berth.stack} --watch shows when it is")
    return name
