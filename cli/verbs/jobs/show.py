"""Jobs of a berth: their list, and what is done with one of them."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from rich.text import Text

from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.fleet_remarks import head_restart
from berth.cli.reach.jobs.client import RayJob, RayJobs
from berth.cli.reach.jobs.dashboard import connected_dashboard
from berth.cli.reach.jobs.follow import exit_code_of_job, stop_job
from berth.cli.reach.moments import age_in_words
from berth.cli.shell.console import err, print_result
from berth.cli.shell.table import NOTHING, Table
from berth.components.cluster.api import ClusterError
from berth.components.core.errors import FAILED, BadInputError
from berth.components.programs.jobs import shortened
from berth.components.ray.live import LiveObjects, live_restarts

_COLORS = {"SUCCEEDED": "green", "FAILED": "red", "RUNNING": "cyan", "PENDING": "yellow"}


def print_jobs(name: str | None, stack: str | None, *, as_json: bool) -> int:
    """Print the jobs of a berth; return the exit code."""
    with connected_dashboard(live_berth(name, stack)) as connection:
        ray = RayJobs(connection.berth.name, connection.dashboard)
        jobs = ray.all()
        if not as_json:
            _note_restart(connection.berth)
        shown: Table | str = (
            f"{ray.berth} has no jobs; berth submit {ray.berth} -- COMMAND runs one"
        )
        if jobs:
            shown = jobs_table(jobs, datetime.now(tz=UTC))
        return print_result([job.as_json() for job in jobs], shown, as_json=as_json)


def _note_restart(berth: LiveBerth) -> None:
    """Say that the head restarted lately: it no longer knows the jobs from before."""
    with suppress(ClusterError):
        restarts = live_restarts(LiveObjects(berth.api, berth.namespace), berth.key)
        heads = [restart for restart in restarts if restart.role == "head"]
        if heads:
            err.print(f"{berth.name}: {head_restart(heads[0], datetime.now(UTC))}", style="yellow")


def act_on_job(name: str | None, stack: str | None, job: str, action: str, *, as_json: bool) -> int:
    """Show, stop or follow one job of a berth, or print its log; return the exit code.

    Args:
        name: engineer's id or cluster's name.
        stack: stack that has the berth; None for the one that has the name.
        job: id of the job.
        action: `show`, `stop`, `follow` or `log`.
        as_json: whether to print for a program.

    Raises:
        BadInputError: the head does not know the job, or it is a connected program.
    """
    with connected_dashboard(live_berth(name, stack)) as connection:
        ray = RayJobs(connection.berth.name, connection.dashboard)
        current = ray.get(job)
        if action != "show" and not current.submitted:
            raise BadInputError(
                f"{job} is a program that connected to Ray, not a job: Ray has no log of it and"
                " cannot end it",
                "end the program where it runs",
            )
        match action:
            case "follow":
                return exit_code_of_job(connection, job, as_json=as_json)
            case "log":
                sys.stdout.write(ray.log(job))
                return 0
            case "stop":
                return _stop(ray, job, as_json=as_json)
            case _:
                _print_job(current, ray.berth, as_json=as_json)
                return 0


def _stop(ray: RayJobs, job: str, *, as_json: bool) -> int:
    stopped = stop_job(ray, job)
    if not stopped.has_ended:
        err.print(
            f"Ray is to stop {job}, and ends a job that waits for resources when it gets them"
        )
    _print_job(stopped, ray.berth, as_json=as_json)
    return 0 if stopped.has_ended else FAILED


def jobs_table(jobs: Sequence[RayJob], now: datetime) -> Table:
    """Return jobs for people, with their ages at a moment."""
    table = Table("job", "state", "command", "age", "took", "exit code", hide_first=("age", "took"))
    for job in jobs:
        table.add_row(
            job.id if job.submitted else f"{job.id} (connected)",
            Text(job.status.lower(), style=_COLORS.get(job.status, "")),
            shortened(job.entrypoint) or NOTHING,
            _age(job, now) or NOTHING,
            _took(job, now) or NOTHING,
            NOTHING if job.exit_code is None else str(job.exit_code),
        )
    return table


def _print_job(job: RayJob, berth: str, *, as_json: bool) -> None:
    now = datetime.now(tz=UTC)
    lines = {
        "job": job.id,
        "state": job.status.lower(),
        "command": job.entrypoint,
        "why": job.reason,
        "age": _age(job, now),
        "took": _took(job, now),
        "exit code": "" if job.exit_code is None else str(job.exit_code),
    }
    shown = "\n".join(f"{label:<11}{text}" for label, text in lines.items() if text)
    print_result({"berth": berth, **job.as_json()}, shown, as_json=as_json)
    if job.submitted and not job.has_ended and not as_json:
        err.print(f"its log: berth jobs {berth} {job.id} --follow")


def _age(job: RayJob, now: datetime) -> str:
    return age_in_words(job.started.isoformat(), now) if job.started else ""


def _took(job: RayJob, now: datetime) -> str:
    if job.started is None:
        return ""
    seconds = ((job.ended or now) - job.started).total_seconds()
    return str(timedelta(seconds=max(int(seconds), 0)))
