"""`berth status --watch`: the fleet as it changes, and what waits for what."""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from berth.cli.reach.berths import names_of
from berth.cli.reach.environment import LiveEnvironment, brought_up
from berth.cli.reach.fleet import fleet_from, require_berths
from berth.cli.reach.fleet_tables import fleet_tables
from berth.cli.reach.moments import age_in_words
from berth.cli.shell.console import err, out
from berth.cli.shell.table import Table
from berth.components.cluster.api import EVENTS, PODS, ClusterApi, ClusterError, Object, Reader
from berth.components.cluster.mirror import Mirror
from berth.components.cluster.owned import owners_of
from berth.components.cluster.pods import why_not_ready
from berth.components.core.words import counted
from berth.components.ray.live import SCALING, Fleet


@dataclass(frozen=True)
class Waiting:
    """Pods that wait for the same reason."""

    name: str
    kind: str
    """`head` or `worker`."""
    pods: int
    reason: str
    since: str
    """Creation of the first of them, `2026-01-31T12:00:00Z`."""


def watch_fleet(stack: str, interval: float, *, as_json: bool) -> int:
    """Show a fleet until Ctrl-C; return the exit code.

    A terminal shows one picture that changes and whose last state stays. Elsewhere each change
    prints a picture, or a line of JSON.
    """
    up = brought_up(stack)
    reader = Mirror(ClusterApi(up.kubeconfig))
    fleet, queue = fleet_and_queue(reader, stack, up)
    require_berths(fleet, stack, up)
    live = None
    if out.is_terminal and not as_json:
        live = Live(
            _picture(fleet, queue, interval),
            console=out,
            auto_refresh=False,
            vertical_overflow="visible",
        )
    printed = None
    with suppress(KeyboardInterrupt), live or nullcontext():
        while True:
            if live:
                live.update(_picture(fleet, queue, interval), refresh=True)
            elif (fleet, queue) != printed:
                _print(fleet, queue, as_json=as_json)
                printed = (fleet, queue)
            time.sleep(interval)
            try:
                fleet, queue = fleet_and_queue(reader, stack, up)
            except ClusterError as error:
                if live:
                    live.update(_picture(fleet, queue, interval, str(error)), refresh=True)
                else:
                    err.print(f"could not be asked: {error}", style="yellow")
    return 0


def fleet_and_queue(reader: Reader, stack: str, up: LiveEnvironment) -> tuple[Fleet, list[Waiting]]:
    """Return the fleet of a stack as it is now, and the pods that wait."""
    fleet = fleet_from(reader, stack, up)
    there = owners_of(reader).of_environment(up.contract.name)
    owners = there.of_stack(stack) if up.stack != stack else there
    pods = [pod for pod in reader.list(PODS)[0] if pod["status"].get("phase") == "Pending"]
    return fleet, queue_of(owners.owned_objects(pods), reader.list(EVENTS, **SCALING)[0])


def queue_of(pods: Iterable[Object], scaling: Iterable[Object]) -> list[Waiting]:
    """Return the pods that wait, grouped by reason, those that wait longest first."""
    events = list(scaling)
    created: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for pod in pods:
        metadata = pod["metadata"]
        reason = why_not_ready(pod, "", events)
        if reason is None or "deletionTimestamp" in metadata:
            continue
        kind = str((metadata.get("labels") or {}).get("ray.io/node-type", "pod"))
        name = next(iter(names_of([pod])), str(metadata.get("namespace")))
        created[name, kind, reason.removeprefix("pod ")].append(
            str(metadata.get("creationTimestamp") or "")
        )
    queue = [
        Waiting(name, kind, len(moments), reason, min(moments))
        for (name, kind, reason), moments in created.items()
    ]
    return sorted(queue, key=lambda waiting: (waiting.since, waiting.name, waiting.kind))


def waiting_table(queue: Iterable[Waiting], now: datetime) -> Table:
    """Return the pods that wait for people, with how long they do at a moment."""
    table = Table("of", "pods", "for", "why", title="waiting", hide_first=("for", "pods"))
    for waiting in queue:
        pods = counted(waiting.pods, waiting.kind)
        table.add_row(
            waiting.name,
            pods,
            age_in_words(waiting.since, now),
            Text(waiting.reason, style="yellow"),
        )
    return table


def _tables(fleet: Fleet, queue: Sequence[Waiting]) -> list[RenderableType]:
    tables: list[RenderableType] = [fleet_tables(fleet)]
    if queue:
        tables.append(waiting_table(queue, datetime.now(UTC)))
    return tables


def _picture(
    fleet: Fleet, queue: list[Waiting], interval: float, problem: str = ""
) -> RenderableType:
    parts = _tables(fleet, queue)
    if problem:
        parts.append(Text(f"could not be asked: {problem}", style="bold red"))
    return Group(
        *parts,
        Text(
            f"{datetime.now(UTC):%H:%M:%S} UTC, every {interval:g} s; Ctrl-C ends it", style="dim"
        ),
    )


def _print(fleet: Fleet, queue: list[Waiting], *, as_json: bool) -> None:
    if as_json:
        document = {"time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", **fleet.as_json()}
        sys.stdout.write(
            json.dumps({**document, "waiting": [asdict(waiting) for waiting in queue]}) + "\n"
        )
        sys.stdout.flush()
        return
    out.print(f"{datetime.now(UTC):%H:%M:%S} UTC", style="dim")
    out.print(*_tables(fleet, queue), sep="\n")
