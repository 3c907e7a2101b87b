"""`berth logs`: the log of one of a berth's pods, or the operator's lines about it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from berth.cli.reach.berths import Berth, find
from berth.cli.reach.operator_log import operator_lines
from berth.cli.reach.pods import HEAD_CONTAINER, WORKER_CONTAINER, choose
from berth.cli.shell.console import err
from berth.components.cluster.api import PODS, within
from berth.components.cluster.pods import why_not_ready
from berth.components.core.errors import BerthError


@dataclass(frozen=True)
class Selection:
    """A log, and a part of it.

    Attributes:
        worker: the worker, counted from 1 by name, `2` or `gpu/2`; None for the head.
        tail: number of last lines; None for all.
        operator: the operator's lines instead of a pod's log.
        previous: the container before the last restart.
        follow: go on as lines come.
    """

    worker: str | None = None
    tail: int | None = None
    operator: bool = False
    previous: bool = False
    follow: bool = False

    @property
    def query(self) -> dict[str, str]:
        """Query of the request to the API server."""
        flags = {"follow": self.follow, "previous": self.previous}
        return {key: "true" for key, value in flags.items() if value}


def logs(name: str | None, stack: str | None, selection: Selection) -> None:
    """Print a log."""
    for line in _lines(find(name, stack), selection):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _lines(berth: Berth, selection: Selection) -> Iterable[str]:
    if selection.operator:
        lines = operator_lines(berth, selection.query)
        return lines if selection.tail is None or selection.follow else deque(lines, maxlen=selection.tail)
    pod = choose(berth, selection.worker)
    name = pod["metadata"]["name"]
    if berth.is_simulated(pod):
        raise BerthError(f"pod {name} is on a simulated node: its containers never run and have no log")
    if reason := why_not_ready(pod):
        err.print(f"note: {name}: {reason}", markup=False)
    query = {"container": HEAD_CONTAINER if selection.worker is None else WORKER_CONTAINER, **selection.query}
    if selection.tail is not None:
        query["tailLines"] = str(selection.tail)
    return berth.api.lines(f"{within(berth.namespace, PODS)}/{name}/log", **query)
