"""`berth logs`: the log of one of a berth's pods, or the operator's lines about it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from berth.cli.berths import Berth, find
from berth.cli.console import err
from berth.cli.operator_log import operator_lines
from berth.cli.running import HEAD_CONTAINER
from berth.components.cluster.api import PODS, Object, within
from berth.components.cluster.pods import why_not_ready
from berth.components.core.errors import BadInputError, BerthError
from berth.components.plan.effect import counted

WORKER_CONTAINER = "ray-worker"


@dataclass(frozen=True)
class Selection:
    """Which log, and how much of it.

    Attributes:
        worker: the worker, counted from 1 by name; None for the head.
        operator: the operator's lines instead.
        tail: so many of the last lines; None for all.
        previous: of the container before this one.
        follow: go on as lines come.
    """

    worker: int | None = None
    tail: int | None = None
    operator: bool = False
    previous: bool = False
    follow: bool = False

    @property
    def query(self) -> dict[str, str]:
        """How the API server is asked for it."""
        asked = {"follow": self.follow, "previous": self.previous}
        return {key: "true" for key, value in asked.items() if value}


def logs(name: str | None, stack: str | None, selection: Selection) -> int:
    """Print a log; the exit code.

    Raises:
        BadInputError: no such berth or worker.
        BerthError: there is no log.
        StatusError: its environment can't be asked.
        ClusterError: the API server can't be asked.
    """
    berth = find(name, stack)
    if selection.operator:
        lines: Iterable[str] = operator_lines(berth, selection.query)
        if selection.tail is not None and not selection.follow:
            lines = deque(lines, maxlen=selection.tail)
        return _print(lines)
    pod = choose(berth, selection.worker)
    name = pod["metadata"]["name"]
    if berth.is_simulated(pod):
        raise BerthError(f"pod {name} is on a simulated node: its containers never run and have no log")
    container = HEAD_CONTAINER if selection.worker is None else WORKER_CONTAINER
    if reason := why_not_ready(pod):
        err.print(f"note: {name}: {reason}", markup=False)
    query = {"container": container, **selection.query}
    if selection.tail is not None:
        query["tailLines"] = str(selection.tail)
    return _print(berth.api.lines(f"{within(berth.namespace, PODS)}/{name}/log", **query))


def choose(berth: Berth, worker: int | None) -> Object:
    """The head's pod, or a worker's.

    Raises:
        BadInputError: there is no such worker.
        BerthError: there is no head.
        ClusterError: the API server can't be asked.
    """
    pods = berth.pods("worker" if worker else "head")
    if not pods and (asleep := berth.asleep()):
        raise BerthError(asleep)
    if worker is None:
        if not pods:
            raise BerthError(f"{berth.name} has no head pod yet; berth logs {berth.name} --operator may tell why")
        return pods[0]
    if worker > len(pods):
        raise BadInputError(f"{berth.name} has {counted(len(pods), 'worker')}; there is no worker {worker}")
    return pods[worker - 1]


def _print(lines: Iterable[str]) -> int:
    for line in lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return 0
