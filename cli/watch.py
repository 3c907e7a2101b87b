"""`berth status --watch`: the fleet as it changes, and what waits for what."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from berth.cli.berths import names_of
from berth.cli.console import err, out
from berth.cli.environment import Environment, brought_up
from berth.cli.life import age
from berth.cli.status import Fleet, observe, table
from berth.components.cluster.api import EVENTS, PODS, ClusterApi, ClusterError, Object
from berth.components.cluster.pods import why_not_ready
from berth.components.core.owner import ENVIRONMENT_LABEL, STACK_LABEL


@dataclass(frozen=True)
class Waiting:
    """Pods that wait for the same.

    Attributes:
        name: whose berth or cluster.
        kind: `head` or `worker`.
        pods: how many.
        reason: for what.
        since: when the first of them was made, `2026-01-31T12:00:00Z`.
    """

    name: str
    kind: str
    pods: int
    reason: str
    since: str


def watch(stack: str, interval: float, *, as_json: bool) -> int:
    """Show a fleet until Ctrl-C; the exit code.

    On a terminal one picture that changes, whose last state stays; elsewhere a picture, or a line of JSON, whenever it changes.

    Args:
        stack: an environment's stack, or an engineer's.
        interval: seconds between two looks.
        as_json: for a program.

    Raises:
        StatusError: the environment can't be asked.
        ClusterError: its API server can't be asked at the first look.
    """
    up = brought_up(stack)
    api = ClusterApi(up.kubeconfig)
    fleet, queue = look(api, stack, up)
    moving = out.is_terminal and not as_json
    live = Live(_picture(fleet, queue, interval), console=out, auto_refresh=False, vertical_overflow="visible")
    told = None
    with suppress(KeyboardInterrupt), live if moving else nullcontext():
        while True:
            if moving:
                live.update(_picture(fleet, queue, interval), refresh=True)
            elif (fleet, queue) != told:
                _print(fleet, queue, as_json=as_json)
                told = (fleet, queue)
            time.sleep(interval)
            try:
                fleet, queue = look(api, stack, up)
            except ClusterError as error:
                _say(live if moving else None, fleet, queue, str(error))
    return 0


def look(api: ClusterApi, stack: str, up: Environment) -> tuple[Fleet, list[Waiting]]:
    """The fleet of a stack as it is now, and what waits.

    Raises:
        ClusterError: the API server can't be asked.
    """
    fleet = observe(api, stack, up.contract)
    on_it = f"{ENVIRONMENT_LABEL}={up.contract.name}"
    if up.stack != stack:
        fleet = fleet.of_stack(stack)
        on_it = f"{on_it},{STACK_LABEL}={stack}"
    pods, _ = api.list(PODS, labelSelector=on_it, fieldSelector="status.phase=Pending")
    said, _ = api.list(EVENTS, fieldSelector="involvedObject.kind=Pod,source=cluster-autoscaler")
    return fleet, queue_of(pods, said)


def queue_of(pods: Iterable[Object], scaling: Iterable[Object]) -> list[Waiting]:
    """What waits for what, those that wait longest first.

    Args:
        pods: pods that are not running yet.
        scaling: what the cluster's autoscaler said of pods, as events.
    """
    said = list(scaling)
    counted: Counter[tuple[str, str, str]] = Counter()
    since: dict[tuple[str, str, str], str] = {}
    for pod in pods:
        reason = why_not_ready(pod, "", said)
        if reason is None or "deletionTimestamp" in pod["metadata"]:
            continue
        kind = str((pod["metadata"].get("labels") or {}).get("ray.io/node-type", "pod"))
        key = (next(iter(names_of([pod])), str(pod["metadata"].get("namespace"))), kind, reason.removeprefix("pod "))
        made = str(pod["metadata"].get("creationTimestamp") or "")
        counted[key] += 1
        since[key] = min(since.get(key, made), made)
    found = [
        Waiting(name, kind, counted[name, kind, reason], reason, since[name, kind, reason])
        for name, kind, reason in counted
    ]
    return sorted(found, key=lambda each: (each.since, each.name, each.kind))


def queue_table(queue: Iterable[Waiting], now: datetime) -> Table:
    """What waits, for people."""
    grid = Table("of", "pods", "for", box=box.SIMPLE_HEAD, title="waiting", title_justify="left")
    grid.add_column("why", overflow="fold")
    for each in queue:
        pods = f"{each.pods} {each.kind}" if each.pods == 1 else f"{each.pods} {each.kind}s"
        grid.add_row(each.name, pods, age(each.since, now), Text(each.reason, style="yellow"))
    return grid


def _now() -> datetime:
    return datetime.now(tz=UTC)


def _picture(fleet: Fleet, queue: list[Waiting], interval: float, problem: str = "") -> RenderableType:
    now = _now()
    foot = Text(f"{now:%H:%M:%S} UTC, every {interval:g} s; Ctrl-C ends it", style="dim")
    parts: list[RenderableType] = [table(fleet)]
    if queue:
        parts.append(queue_table(queue, now))
    if problem:
        parts.append(Text(f"could not be asked: {problem}", style="bold red"))
    return Group(*parts, foot)


def _print(fleet: Fleet, queue: list[Waiting], *, as_json: bool) -> None:
    if as_json:
        document: dict[str, Any] = {"time": f"{_now():%Y-%m-%dT%H:%M:%SZ}", **fleet.as_json()}
        sys.stdout.write(json.dumps({**document, "waiting": [asdict(each) for each in queue]}) + "\n")
        sys.stdout.flush()
        return
    out.print(Text(f"{_now():%H:%M:%S} UTC", style="dim"))
    out.print(table(fleet))
    if queue:
        out.print(queue_table(queue, _now()))


def _say(live: Live | None, fleet: Fleet, queue: list[Waiting], problem: str) -> None:
    if live is None:
        err.print(f"could not be asked: {problem}", markup=False, style="yellow")
    else:
        live.update(_picture(fleet, queue, 0, problem), refresh=True)
