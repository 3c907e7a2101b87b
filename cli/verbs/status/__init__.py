"""`berth status`."""

from pathlib import Path
from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Stack
from berth.cli.shell.console import print_result
from berth.components.core.errors import FAILED, BadInputError


def run(
    stack: Stack,
    interval: Annotated[
        float,
        typer.Option(min=0.5, metavar="SECONDS", help="Seconds between two looks of --watch."),
    ] = 2.0,
    *,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", "-w", help="Go on until Ctrl-C, and show which pods wait for what."
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write one page to share, in place of the tables; - for stdout.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show node pools, berths, clusters, jobs and services with their state.

    Exit code 0 if everything is ready and jobs run or have succeeded, 1 if not or if the cluster
    cannot be asked, 2 for a stack that is wrong or not up; with --watch 0.

    Example: `berth status -s lab --watch`
    """
    if html and (watch or as_json):
        other = "--watch" if watch else "--json"
        raise BadInputError(
            f"--html writes one page, so it does not go with {other}",
            "leave one of the two options out",
        )
    if watch:
        from berth.cli.verbs.status import live_view

        return live_view.watch_fleet(stack, interval, as_json=as_json)
    from berth.cli.reach.fleet import fleet_of
    from berth.cli.reach.fleet_tables import fleet_tables

    fleet = fleet_of(stack)
    if html:
        from berth.cli.verbs.status import page

        page.write_page(fleet, html)
    else:
        print_result(fleet.as_json(), fleet_tables(fleet), as_json=as_json)
    return 0 if fleet.ready else FAILED
