"""`berth jobs`: jobs of a berth, one of them, its log and its end."""

import sys
from datetime import UTC, datetime, timedelta

from rich.text import Text

from berth.cli.reach.berths import live_berth
from berth.cli.reach.jobs.client import RayJob, RayJobs
from berth.cli.reach.jobs.dashboard import connected_dashboard
from berth.cli.reach.jobs.follow import exit_code_of_job, stop_job
from berth.cli.reach.moments import age_in_words
from berth.cli.shell.console import Table, err, print_result
from berth.components.core.errors import FAILED, BadInputError
from berth.components.programs.jobs import shortened

_COLORS = {"SUCCEEDED": "green", "FAILED": "red", "RUNNING": "cyan", "PENDING": "yellow"}


def print_jobs(
    name: str | None, stack: str | None, job: str | None, action: str | None, *, as_json: bool
) -> int:
    """Print the jobs of a berth, one of them, or its log, or stop it; return the exit code."""
    with connected_dashboard(live_berth(name, stack)) as connection:
        ray = RayJobs(connection.berth.name, connection.dashboard)
        if job is None:
            return _all(ray, as_json=as_json)
        found = ray.get(job)
        if action and not found.submitted:
            raise BadInputError(
                f"{job} is a program that connected to Ray, not a job: Ray has no log of it and"
                " cannot end it",
                "end the program where it runs",
            )
        if action == "stop":
            found = stop_job(ray, job)
            if not found.has_ended:
                err.print(
                    f"Ray is to stop {job}, and ends a job that waits for resources when it gets"
                    " them"
                )
        elif action == "follow":
            return exit_code_of_job(connection, job, as_json=as_json)
        elif action == "log":
            sys.stdout.write(ray.log(job))
            return 0
        _one(found, ray.berth, as_json=as_json)
        return FAILED if action == "stop" and not found.has_ended else 0


def _all(ray: RayJobs, *, as_json: bool) -> int:
    found = ray.all()
    none = f"{ray.berth} has no jobs; berth submit {ray.berth} -- COMMAND runs one"
    shown = jobs_table(found, datetime.now(tz=UTC)) if found else none
    return print_result([job.as_json() for job in found], shown, as_json=as_json)


def jobs_table(found: list[RayJob], now: datetime) -> Table:
    """Return jobs for people."""
    grid = Table("job", "state", "command", "age", "took", "exit code")
    for job in found:
        grid.add_row(
            job.id if job.submitted else f"{job.id} (connected)",
            Text(job.status.lower(), style=_COLORS.get(job.status, "")),
            shortened(job.entrypoint) or "–",
            age_in_words(job.started.isoformat(), now) if job.started else "–",
            _took(job, now) or "–",
            "–" if job.exit_code is None else str(job.exit_code),
        )
    return grid


def _one(job: RayJob, berth: str, *, as_json: bool) -> None:
    now = datetime.now(tz=UTC)
    facts = {
        "job": job.id,
        "state": job.status.lower(),
        "command": job.entrypoint,
        "why": job.reason,
        "age": age_in_words(job.started.isoformat(), now) if job.started else "",
        "took": _took(job, now),
        "exit code": "" if job.exit_code is None else str(job.exit_code),
    }
    shown = "\n".join(f"{label:<11}{text}" for label, text in facts.items() if text)
    print_result({"berth": berth, **job.as_json()}, shown, as_json=as_json)
    if job.submitted and not job.has_ended and not as_json:
        err.print(f"its log: berth jobs {berth} {job.id} --follow")


def _took(job: RayJob, now: datetime) -> str:
    if job.started is None:
        return ""
    return str(timedelta(seconds=max(int(((job.ended or now) - job.started).total_seconds()), 0)))
