"""`berth exec`: a command in a container of a berth's head or worker, at this terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from berth.cli.berths import find
from berth.cli.kubectl import kubectl
from berth.cli.logs import WORKER_CONTAINER
from berth.cli.running import HEAD_CONTAINER
from berth.cli.ssh.login import marked_as_used
from berth.cli.ssh.session import pod_of


def execute(name: str, stack: str | None, worker: int | None, command: Sequence[str]) -> int:
    """Run a command in a container; return its exit code."""
    berth = find(name, stack)
    container = HEAD_CONTAINER if worker is None else WORKER_CONTAINER
    where = ["--namespace", berth.namespace, pod_of(berth, worker), "--container", container]
    terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    with marked_as_used(berth), kubectl(berth.environment.kubeconfig) as program:
        return program.attached("exec", "--stdin", *terminal, *where, "--", *command)
