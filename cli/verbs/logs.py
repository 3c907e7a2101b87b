"""`berth logs`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.reach.arguments import Name, OnStack, Worker, whole_number
from berth.components.core.errors import BadInputError

if TYPE_CHECKING:
    from berth.cli.reach.berths import LiveBerth

_OF_THE_OPERATOR = 50
"""Number of the operator's lines, which are several for each look at a berth."""


def run(
    name: Name = None,
    stack: OnStack = None,
    worker: Worker = None,
    tail: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(0),
            metavar="N",
            help="Number of last lines.",
            show_default="all; 50 of the operator",
        ),
    ] = None,
    *,
    head: Annotated[bool, typer.Option("--head", help="Log of the head; the default.")] = False,
    operator: Annotated[
        bool, typer.Option("--operator", help="The KubeRay operator's lines about the berth.")
    ] = False,
    previous: Annotated[
        bool, typer.Option("--previous", help="Log of the container before its last restart.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as lines come, until Ctrl-C.")
    ] = False,
) -> None:
    """Print the log of a berth's head, of a worker, or the operator's lines about it.

    Exit code 0 if there is a log, 1 if there is none or the cluster cannot be asked, 2 for a
    wrong name.

    Example: `berth logs alice --worker 1 --follow`
    """
    if sum((head, worker is not None, operator)) > 1:
        raise BadInputError("--head, --worker and --operator are three logs; choose one")
    from berth.cli.reach.berths import live_berth
    from berth.cli.reach.pod_log import pod_lines

    berth = live_berth(name, stack)
    query: dict[str, str] = {}
    if previous:
        query["previous"] = "true"
    if follow:
        query["follow"] = "true"
    if operator:
        lines = _lines_of_operator(berth, query, tail, follow=follow)
    else:
        if tail is not None:
            query["tailLines"] = str(tail)
        lines = pod_lines(berth, worker, query)
    for line in lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _lines_of_operator(
    berth: LiveBerth, query: dict[str, str], tail: int | None, *, follow: bool
) -> Iterator[str]:
    """Return the operator's lines about a berth: the last ones, or all as they come."""
    from collections import deque

    from berth.cli.reach.operator_log import operator_lines, readable_line

    lines = map(readable_line, operator_lines(berth, query))
    if follow:
        return lines
    return iter(deque(lines, maxlen=_OF_THE_OPERATOR if tail is None else tail))
