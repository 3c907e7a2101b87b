"""`berth jobs`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Name, OnStack
from berth.components.core.errors import BadInputError


def run(
    name: Name = None,
    job: Annotated[str | None, typer.Argument(metavar="JOB", help="Id of one job.")] = None,
    stack: OnStack = None,
    *,
    log: Annotated[bool, typer.Option("--log", help="Print the job's log.")] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Print the job's log as it comes, until the job ends."),
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End the job.")] = False,
    as_json: Json = False,
) -> int:
    """List the jobs of a berth, or show, follow or stop one.

    Ray forgets its jobs when the head restarts. Programs that are connected to Ray without
    `berth submit` or `ray job submit`, such as notebooks, are listed too.

    Exit code 0 if Ray answers, 1 if it cannot be asked, the berth is suspended, or the job does
    not end; with --follow the exit code of the job; 2 for a wrong name or an unknown job.

    Example: `berth jobs alice train-1a2b3c --follow`
    """
    if sum((log, follow, stop)) > 1:
        raise BadInputError("--log, --follow and --stop exclude each other; choose one")
    if job is None and (log or follow or stop):
        raise BadInputError(
            "--log, --follow and --stop are for one job; name it: berth jobs NAME JOB"
        )
    from berth.cli.verbs.jobs import show

    action = "log" if log else "follow" if follow else "stop" if stop else None
    return show.print_jobs(name, stack, job, action, as_json=as_json)
