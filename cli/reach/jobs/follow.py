"""Log of a job as it comes, until the job ends: over broken connections, not over a new head."""

import sys
import time
from collections.abc import Callable

from berth.cli.reach.jobs.client import RayJob, RayJobs
from berth.cli.reach.jobs.dashboard import Connection, DashboardError
from berth.cli.shell.console import err, print_error, print_json
from berth.components.cluster.api import ClusterError
from berth.components.core.errors import BerthError
from berth.components.core.printable import log_text

_PAUSE_SECONDS = 1.0
_ATTEMPTS = 30
_STOP_SECONDS = 20.0


def follow_job(connection: Connection, job: str, write: Callable[[str], object]) -> RayJob:
    """Write a job's log, from its beginning, until the job ends; return the ended job.

    Raises:
        UnknownJobError: the head does not know the job.
        DashboardError: the connection breaks too often.
        BerthError: the head is gone, and the job with it.
    """
    log = _Log(write)
    failed = 0
    while True:
        jobs = RayJobs(connection.berth.name, connection.dashboard)
        try:
            current = _job_at_the_end(jobs, job, log)
            if current.has_ended:
                return current
            failed = 0
        except DashboardError as error:
            failed += 1
            if failed == 1:
                err.print(f"{error}; trying again")
            if failed > _ATTEMPTS:
                raise
            _renew(connection, job)
        time.sleep(_PAUSE_SECONDS)


class _Log:
    """Log of a job that is written as it comes: a new connection begins it again."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._length = 0

    def write_new(self, text: str, end: int) -> None:
        """Write what is new in a piece of the log that ends at a length."""
        if end > self._length:
            self._write(log_text(text[self._length - end :]))
            self._length = end


def _job_at_the_end(jobs: RayJobs, job: str, log: _Log) -> RayJob:
    """Write the rest of a log, and print why the job has not begun; return the job."""
    current = jobs.get(job)
    reported = ""
    length = 0
    for text in jobs.tail(job):
        length += len(text)
        if text:
            log.write_new(text, length)
        elif current.status == "PENDING":
            current = jobs.get(job)
        if current.status == "PENDING" and current.reason != reported:
            reported = current.reason
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
    while True:
        current = jobs.get(job)
        if current.has_ended or time.monotonic() >= until:
            return current
        time.sleep(_PAUSE_SECONDS)


def exit_code_of_job(connection: Connection, job: str, *, as_json: bool) -> int:
    """Follow a job until it ends, and say how it did; return its exit code."""
    stream = sys.stderr if as_json else sys.stdout
    ended = follow_job(connection, job, lambda text: (stream.write(text), stream.flush()))
    took = ""
    if ended.ended and ended.started:
        took = f" after {(ended.ended - ended.started).total_seconds():.0f} s"
    if ended.status == "FAILED":
        # Without an exit code the command never ran, and only Ray's message says why.
        reason = ended.reason if ended.exit_code is not None else ended.message.strip()
        print_error(BerthError(f"job {ended.id} failed{took}: {reason}"))
    else:
        err.print(f"job {ended.id} {ended.status.lower()}{took}")
    if as_json:
        print_json({"berth": connection.berth.name, **ended.as_json()})
    return ended.code
