"""`berth exec`: a command in a container of a berth's head or worker, at this terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from berth.cli import logs
from berth.cli.berths import Berth, find
from berth.cli.connect import ready_head
from berth.cli.kubectl import kubectl
from berth.cli.running import HEAD_CONTAINER
from berth.cli.ssh.login import marked_as_used
from berth.components.cluster.pods import why_not_ready
from berth.components.core.errors import BerthError


def execute(name: str, stack: str | None, worker: str | None, command: Sequence[str]) -> int:
    """Run a command in a container; return its exit code."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return attached(find(name, stack), worker, command, terminal=terminal)


def attached(berth: Berth, worker: str | None, command: Sequence[str], *, terminal: bool = False) -> int:
    """Run a command in a container on this process's streams, as use of the berth.

    Args:
        berth: the berth.
        worker: the worker, counted from 1 by name, `2` or `gpu/2`; None for the head.
        command: the command.
        terminal: whether the streams are a terminal.

    Returns:
        The command's exit code.
    """
    pod = pod_of(berth, worker)
    container = HEAD_CONTAINER if worker is None else logs.WORKER_CONTAINER
    where = ["--namespace", berth.namespace, pod, "--container", container]
    with marked_as_used(berth), kubectl(berth.environment.kubeconfig) as program:
        return program.attached("exec", "--stdin", *(["--tty"] if terminal else []), *where, "--", *command)


def pod_of(berth: Berth, worker: str | None) -> str:
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
