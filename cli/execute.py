"""`berth exec`: a command in a container of a berth's head or worker, at this terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from berth.cli.berths import Berth, find
from berth.cli.kubectl import kubectl
from berth.cli.logs import WORKER_CONTAINER, choose
from berth.cli.running import HEAD_CONTAINER
from berth.components.cluster.api import Object
from berth.components.cluster.pods import why_not_ready
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.components.core.words import counted

GROUP_LABEL = "ray.io/group"
"""KubeRay's label of a worker's group (ray-operator/controllers/ray/utils/constant.go)."""


def execute(name: str, stack: str | None, worker: str | None, command: Sequence[str]) -> int:
    """Run a command in a container; return its exit code."""
    berth = find(name, stack)
    pod = chosen(berth, worker)
    podname = pod["metadata"]["name"]
    if berth.is_simulated(pod):
        raise BerthError(f"pod {podname} is on a simulated node: no container runs there")
    if reason := why_not_ready(pod):
        raise BerthError(f"{podname} is not ready: {reason}")
    container = HEAD_CONTAINER if worker is None else WORKER_CONTAINER
    terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    where = ["--namespace", berth.namespace, podname, "--container", container]
    with kubectl(berth.environment.kubeconfig) as program:
        return program.attached("exec", "--stdin", *terminal, *where, "--", *command)


def chosen(berth: Berth, worker: str | None) -> Object:
    """Return the head's pod, or that of a worker: `2`, or `gpu/0` in a group."""
    if worker is None or worker.isdecimal():
        if worker is not None and int(worker) < 1:
            raise BadInputError("--worker: workers count from 1; in a group from 0: GROUP/0")
        return choose(berth, None if worker is None else int(worker))
    group, _, number = worker.partition("/")
    if not number.isdecimal():
        raise BadInputError(f"--worker: {worker!r} is neither a number, such as 1, nor GROUP/N, such as gpu/0")
    by_group: dict[str, list[Object]] = {}
    for pod in berth.pods("worker"):
        by_group.setdefault(str(pod["metadata"]["labels"].get(GROUP_LABEL)), []).append(pod)
    if not by_group and (note := berth.suspension_note()):
        raise BerthError(note)
    if group not in by_group:
        raise BadInputError(f"{berth.name} has no workers of a group {group!r}{did_you_mean(group, by_group)}")
    pods = by_group[group]
    if int(number) >= len(pods):
        raise BadInputError(
            f"group {group} of {berth.name} has {counted(len(pods), 'worker')}, from {group}/0; there is no {worker}"
        )
    return pods[int(number)]
