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
    asked = {"log": log, "follow": follow, "stop": stop}
    actions = [action for action, is_asked in asked.items() if is_asked]
    if len(actions) > 1:
        raise BadInputError("--log, --follow and --stop exclude each other; choose one")
    if job is None and actions:
        raise BadInputError(
            "--log, --follow and --stop are for one job; name it: berth jobs NAME JOB"
        )
    from berth.cli.verbs.jobs import show

    if job is None:
        return show.print_jobs(name, stack, as_json=as_json)
    action = actions[0] if actions else "show"
    return show.act_on_job(name, stack, job, action, as_json=as_json)
