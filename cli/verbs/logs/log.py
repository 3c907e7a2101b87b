"""`berth logs`: the log of one of a berth's pods, or the operator's lines about it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping

from berth.cli.reach.berths import find
from berth.cli.reach.operator_log import operator_lines
from berth.cli.reach.pods import HEAD_CONTAINER, WORKER_CONTAINER, choose
from berth.cli.shell.console import err
from berth.components.cluster.api import PODS, within
from berth.components.cluster.pods import why_not_ready
from berth.components.core.errors import BerthError


def logs(name: str | None, stack: str | None, worker: str | None, tail: int | None, **flags: bool) -> None:
    """Print the log of one of a berth's pods."""
    berth = find(name, stack)
    pod = choose(berth, worker)
    pod_name = pod["metadata"]["name"]
    if berth.is_simulated(pod):
        raise BerthError(f"pod {pod_name} is on a simulated node: its containers never run and have no log")
    if reason := why_not_ready(pod):
        err.print(f"note: {pod_name}: {reason}", markup=False)
    query = {"container": HEAD_CONTAINER if worker is None else WORKER_CONTAINER, **_query(flags)}
    if tail is not None:
        query["tailLines"] = str(tail)
    _write(berth.api.lines(f"{within(berth.namespace, PODS)}/{pod_name}/log", **query))


def operator_log(name: str | None, stack: str | None, tail: int | None, **flags: bool) -> None:
    """Print the operator's lines about a berth, with the arguments of `logs`."""
    lines = operator_lines(find(name, stack), _query(flags))
    _write(lines if tail is None or flags["follow"] else deque(lines, maxlen=tail))


def _query(flags: Mapping[str, bool]) -> dict[str, str]:
    return {flag: "true" for flag, value in flags.items() if value}


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
