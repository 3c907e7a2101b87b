"""Log of a job as it comes, until the job ends: over broken connections, not over a new head."""

import sys
import time
from collections.abc import Callable

from berth.cli.reach.jobs.client import RayJob, RayJobs
from berth.cli.reach.jobs.dashboard import Connection, DashboardError
from berth.cli.shell.console import err, print_error, print_json
from berth.components.cluster.api import ClusterError
from berth.components.core.errors import BerthError

_PAUSE_SECONDS = 1.0
_ATTEMPTS = 30
_STOP_SECONDS = 20.0


def follow_job(connection: Connection, job: str, write: Callable[[str], object]) -> RayJob:
    """Write a job's log, from its beginning, until the job ends; return the ended job."""
    written = failed = 0

    def write_new(text: str, end: int) -> None:
        """Write what is new in a piece of the log that ends at a length: it may come again."""
        nonlocal written
        if end > written:
            write(text[written - end :])
            written = end

    while True:
        jobs = RayJobs(connection.berth.name, connection.dashboard)
        try:
            found = _until_the_end(jobs, job, write_new)
            if found.has_ended:
                return found
            failed = 0
        except DashboardError as error:
            failed += 1
            if failed == 1:
                err.print(f"{error}; trying again")
            if failed > _ATTEMPTS:
                raise
            _renew(connection, job)
        time.sleep(_PAUSE_SECONDS)


def _until_the_end(jobs: RayJobs, job: str, write_new: Callable[[str, int], None]) -> RayJob:
    """Write the rest of a log, and print why the job has not begun; return the job."""
    found, reported, seen = jobs.get(job), "", 0
    for text in jobs.tail(job):
        seen += len(text)
        if text:
            write_new(text, seen)
        elif found.status == "PENDING":
            found = jobs.get(job)
        if found.status == "PENDING" and found.reason != reported:
            reported = found.reason
            err.print(f"{job} is pending: {reported}")
    return jobs.get(job)


def _renew(connection: Connection, job: str) -> None:
    """Connect again, if the head is still the same."""
    berth = connection.berth
    try:
        heads = {pod["metadata"]["uid"] for pod in berth.pods("head")}
        if connection.head["metadata"]["uid"] in heads:
            connection.renew()
            return
    except (ClusterError, DashboardError) as error:
        err.print(str(error), style="dim")
        return
    raise BerthError(
        f"the head of {berth.name} is gone, and job {job} with it",
        f"submit the job again when {berth.name} is ready; berth status shows why it is not",
    )


def stop_job(jobs: RayJobs, job: str) -> RayJob:
    """Stop a job, and wait a moment until it has ended; return the job."""
    jobs.stop(job)
    until = time.monotonic() + _STOP_SECONDS
    while not (found := jobs.get(job)).has_ended and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
    return found


def exit_code_of_job(connection: Connection, job: str, *, as_json: bool) -> int:
    """Follow a job until it ends, and say how it did; return its exit code."""
    stream = sys.stderr if as_json else sys.stdout
    ended = follow_job(connection, job, lambda text: (stream.write(text), stream.flush()))
    took = (
        f" after {(ended.ended - ended.started).total_seconds():.0f} s"
        if ended.ended and ended.started
        else ""
    )
    if ended.status == "FAILED":
        # Without an exit code the command never ran, and only Ray's message says why.
        reason = ended.reason if ended.exit_code is not None else ended.message.strip()
        print_error(BerthError(f"job {ended.id} failed{took}: {reason}"))
    else:
        err.print(f"job {ended.id} {ended.status.lower()}{took}")
    if as_json:
        print_json({"berth": connection.berth.name, **ended.as_json()})
    return ended.code
