"""Ray's Jobs API: the requests of `ray job submit`, without Ray on this machine.

Paths, fields and answers are those of Ray 2.60.0: python/ray/dashboard/modules/job/job_head.py,
common.py (`JobSubmitRequest`, `JobStatus`) and pydantic_models.py (`JobDetails`); answers of a real
Ray are recorded in tests/unit/cli/verbs/ray_jobs.json.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any
from urllib.parse import quote

from berth.cli.reach.jobs.dashboard import Dashboard, DashboardError, DashboardRefusedError
from berth.cli.reach.jobs.package import FolderPackage
from berth.components.core.errors import FAILED, BadInputError, BerthError

ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
"""Statuses that do not change any more."""

_JOBS = "/api/jobs/"
_NOT_FOUND = 404
_TOO_LARGE = 413
_SIGNALED = 128
_MOST_CODES = 256


@dataclass(frozen=True)
class RayJob:
    """Submitted job, or another program that is connected to Ray."""

    id: str
    """Ray's id: the submission's, or that of a connected program."""
    submitted: bool
    """Whether it was submitted, so that it has a log and can be stopped."""
    status: str
    """PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED."""
    entrypoint: str
    message: str
    error: str
    """Ray's kind of failure; "" without one."""
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    """Exit code of the command; negative for a signal; None if it did not end."""

    @property
    def has_ended(self) -> bool:
        """Whether the status does not change any more."""
        return self.status in ENDED

    @property
    def code(self) -> int:
        """Exit code for a command that waits for the job: as a shell has it for a signal."""
        if self.status == "SUCCEEDED":
            return 0
        if not self.exit_code:
            return FAILED
        if self.exit_code < 0:
            return _SIGNALED - self.exit_code
        return self.exit_code % _MOST_CODES or FAILED

    @property
    def reason(self) -> str:
        """First line of Ray's words on the status, without the log that follows."""
        return self.message.partition(", last available logs")[0].partition("\n")[0]

    def as_json(self) -> dict[str, Any]:
        """Return the job for programs."""
        return {
            "id": self.id,
            "submitted": self.submitted,
            "status": self.status,
            "entrypoint": self.entrypoint,
            "message": self.reason,
            "errorType": self.error or None,
            "started": self.started and self.started.isoformat(),
            "ended": self.ended and self.ended.isoformat(),
            "exitCode": self.exit_code,
        }


class UnknownJobError(BadInputError):
    """Job that the head does not know."""


class RayJobs:
    """Jobs of one berth's Ray, whose head may answer anything: its tenant's programs run there."""

    def __init__(self, berth: str, dashboard: Dashboard) -> None:
        self.berth = berth
        self.dashboard = dashboard

    def all(self) -> list[RayJob]:
        """Return all jobs and connected programs, the newest first."""
        answer = self.dashboard.answer_to("GET", _JOBS)
        jobs = [_job(self._object(entry)) for entry in self._list(answer)]
        return sorted(jobs, key=lambda job: (job.started or _UNKNOWN, job.id), reverse=True)

    def get(self, job: str) -> RayJob:
        """Return a job.

        Raises:
            UnknownJobError: the head does not know the job.
        """
        return _job(self._object(self._of(job, "GET", "")))

    def log(self, job: str) -> str:
        """Return the log of a submitted job."""
        return str(self._object(self._of(job, "GET", "/logs")).get("logs") or "")

    def tail(self, job: str) -> Iterator[str]:
        """Yield the log of a submitted job from its beginning, as it comes, until the job ends."""
        return self.dashboard.messages(f"{_path(job)}/logs/tail")

    def stop(self, job: str) -> bool:
        """Ask Ray to stop a job; return whether it was running. Ray takes a few seconds for it."""
        return bool(self._object(self._of(job, "POST", "/stop")).get("stopped"))

    def submit(self, request: Mapping[str, Any]) -> str:
        """Submit a job, with a `submission_id`; return that id.

        Raises:
            BadInputError: there is a job with that id.
            BerthError: Ray refuses the job.
        """
        job = str(request["submission_id"])
        try:
            self.dashboard.answer_to("POST", _JOBS, body=request)
        except DashboardRefusedError as error:
            if "already exists" in error.text:
                raise BadInputError(
                    f"{self.berth} has a job {job!r} already",
                    f"choose another --name; berth jobs {self.berth} lists them",
                ) from None
            raise BerthError(
                f"Ray refuses the job: {error.last_line}", "correct what it names"
            ) from None
        return job

    def upload(self, package: FolderPackage, file: IO[bytes]) -> bool:
        """Give Ray the file of a package; return whether it was missing.

        Raises:
            BadInputError: the package is too large for Ray.
        """
        path = f"/api/packages/gcs/{package.name}"
        try:
            self.dashboard.answer_to("GET", path)
        except DashboardRefusedError as error:
            if error.status != _NOT_FOUND:
                raise
        else:
            return False
        try:
            self.dashboard.put(path, file, package.size)
        except DashboardRefusedError as error:
            if error.status == _TOO_LARGE:
                raise BadInputError(
                    f"--working-dir: Ray refuses a package of {package}",
                    "leave data out with a .rayignore file",
                ) from None
            raise
        return True

    def _object(self, answer: Any) -> dict[str, Any]:
        """Return an answer that is an object, as Ray's is.

        Raises:
            DashboardError: it is not.
        """
        if not isinstance(answer, dict):
            raise self._nonsense()
        return answer

    def _list(self, answer: Any) -> list[Any]:
        """Return an answer that is a list, as Ray's is.

        Raises:
            DashboardError: it is not.
        """
        if not isinstance(answer, list):
            raise self._nonsense()
        return answer

    def _nonsense(self) -> DashboardError:
        return DashboardError(
            f"the dashboard of {self.berth} answers otherwise than Ray's, so its jobs are unknown"
        )

    def _of(self, job: str, method: str, what: str) -> Any:
        try:
            return self.dashboard.answer_to(method, f"{_path(job)}{what}")
        except DashboardRefusedError as error:
            if error.status == _NOT_FOUND:
                raise UnknownJobError(
                    f"{self.berth} has no job {job!r}; jobs are lost when the head restarts",
                    f"berth jobs {self.berth} lists them",
                ) from None
            raise


_UNKNOWN = datetime.fromtimestamp(0, UTC)


def _path(job: str) -> str:
    return f"{_JOBS}{quote(job, safe='')}"


def _job(entry: Mapping[str, Any]) -> RayJob:
    submission = entry.get("submission_id")
    code = entry.get("driver_exit_code")
    return RayJob(
        id=str(submission or entry.get("job_id") or "?"),
        submitted=bool(submission),
        status=str(entry.get("status") or "?"),
        entrypoint=str(entry.get("entrypoint") or ""),
        message=str(entry.get("message") or ""),
        error=str(entry.get("error_type") or ""),
        started=_moment(entry.get("start_time")),
        ended=_moment(entry.get("end_time")),
        exit_code=code if isinstance(code, int) else None,
    )


def _moment(milliseconds: Any) -> datetime | None:
    """Return a moment that Ray gives in milliseconds since 1970; None for 0, which is unknown."""
    try:
        return datetime.fromtimestamp(milliseconds // 1000, UTC) if milliseconds else None
    except (TypeError, ValueError, OverflowError, OSError):
        return None
