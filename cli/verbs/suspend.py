"""`berth suspend`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Name, OnStack, Timeout


def run(
    name: Name = None,
    stack: OnStack = None,
    timeout: Timeout = "5m",
    *,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Suspend even if running work is lost.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Delete a berth's pods and keep its settings; `berth wake` brings them back.

    Asks before it ends running work, by Ray's own list of jobs and attached sessions. Pulumi sees
    no drift, and leaves the berth suspended. Exit code 0 if it is suspended, 1 if that takes
    longer than the time-out or the cluster cannot be asked, 2 for a wrong name, 3 if work would
    be lost and nobody agreed.

    Example: `berth suspend alice`
    """
    from berth.cli.reach import suspension

    return suspension.suspend_berth(name, stack, timeout, yes=yes, as_json=as_json)
