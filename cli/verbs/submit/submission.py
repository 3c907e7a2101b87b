"""`berth submit`: a command on a berth, from a folder of this machine, with log and exit code."""

import contextlib
import sys
import tempfile
import time

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from berth.cli.reach.berths import live_berth
from berth.cli.reach.jobs.client import RayJobs, UnknownJobError
from berth.cli.reach.jobs.dashboard import DashboardRefusedError, connected_dashboard
from berth.cli.reach.jobs.follow import exit_code_of_job, stop_job
from berth.cli.reach.jobs.package import write_package
from berth.cli.reach.suspension import wake_up
from berth.cli.shell.console import err, print_result
from berth.cli.shell.signals import INTERRUPTED, TERMINATED
from berth.cli.verbs.submit.request import JobRequest
from berth.components.core.errors import BerthError

_NO_AGENT = "No available agent"
_ATTEMPTS = 10
_PAUSE_SECONDS = 2.0


def submit_job(
    name: str,
    stack: str | None,
    request: JobRequest,
    wake_in: float | None,
    *,
    follow: bool,
    as_json: bool,
) -> int:
    """Run a command on a berth; return the exit code: that of the command, if it is waited for.

    Args:
        name: engineer's id or cluster's name.
        stack: stack that has the berth; None for the one that has the name.
        request: the job.
        wake_in: seconds in which a suspended berth has to wake first; None does not wake it.
        follow: whether to wait for the job, and print its log.
        as_json: whether to print for a program.

    Raises:
        BerthError: the berth is suspended or cannot be reached, or Ray refuses the job.
    """
    berth = live_berth(name, stack)
    if note := berth.suspension_note():
        if wake_in is None:
            raise BerthError(note, "add --wake to do that first")
        wake_up(berth, wake_in)
        berth = live_berth(name, stack)
    with connected_dashboard(berth) as connection:
        jobs = RayJobs(berth.name, connection.dashboard)
        body = _with_folder(jobs, request)
        try:
            _submit(jobs, body)
            err.print(f"job {request.id} is submitted to {berth.name}")
            if follow:
                return exit_code_of_job(connection, request.id, as_json=as_json)
            if not as_json:
                err.print(_how(berth.name, request.id))
            job = jobs.get(request.id)
            return print_result({"berth": berth.name, **job.as_json()}, job.id, as_json=as_json)
        except KeyboardInterrupt:
            _ask_to_stop(RayJobs(berth.name, connection.dashboard), request.id)
            return INTERRUPTED
        except SystemExit as end:
            if end.code == TERMINATED:
                _goes_on(berth.name, request.id)
            raise


def _with_folder(jobs: RayJobs, request: JobRequest) -> dict[str, object]:
    """Upload the working directory, if Ray does not have it; return the fields of the request."""
    if request.folder is None:
        return request.body
    with tempfile.TemporaryFile() as file:
        package = write_package(request.folder, file)
        where = f"{request.folder.resolve()} ({package})"
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
        )
        with Progress(
            *columns, console=err, transient=True, disable=not err.is_terminal
        ) as progress:
            seen = progress.wrap_file(file, total=package.size, description=f"uploading {where}")
            new = jobs.upload(package, seen)
        err.print(f"{'uploaded' if new else 'Ray has the files of'} {where}")
    return request.in_package(f"gcs://{package.name}")


def _submit(jobs: RayJobs, body: dict[str, object]) -> None:
    """Submit a job; a head that has just started has no agent for it in its first seconds."""
    for _ in range(_ATTEMPTS):
        try:
            jobs.submit(body)
        except BerthError as error:
            if _NO_AGENT not in str(error):
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
    jobs.submit(body)


def _how(name: str, job: str) -> str:
    return f"its log: berth jobs {name} {job} --follow; to end it: berth jobs {name} {job} --stop"


def _goes_on(name: str, job: str) -> None:
    err.print(f"job {job} goes on without this command\n{_how(name, job)}")


def _ask_to_stop(jobs: RayJobs, job: str) -> None:
    """Ask whether a job that is no longer followed is to stop; without an answer it goes on."""
    agreed = False
    with contextlib.suppress(typer.Abort):  # Ctrl-C again is no consent
        agreed = sys.stdin.isatty() and typer.confirm(
            f"\nStop job {job} too? Otherwise it goes on", err=True
        )
    if not agreed:
        _goes_on(jobs.berth, job)
        return
    try:
        stopped = stop_job(jobs, job)
    except UnknownJobError:
        err.print(f"job {job} was not submitted yet")
    except DashboardRefusedError as error:
        err.print(f"job {job} goes on: {error}")
    else:
        state = "is stopped"
        if not stopped.has_ended:
            state = f"was asked to stop, and is {stopped.status.lower()}"
        err.print(f"job {job} {state}")
