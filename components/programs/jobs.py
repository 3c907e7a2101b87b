"""Running jobs and attached sessions of a RayCluster, from Ray's own list.

Ray's own list of jobs (`GET /api/jobs/` of the dashboard,
https://docs.ray.io/en/latest/cluster/running-applications/job-submission/) has jobs of `ray job
submit` with type `SUBMISSION`, and other connected programs, such as notebooks, with type `DRIVER`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_GOING_ON = frozenset({"PENDING", "RUNNING"})
_LONGEST_ENTRYPOINT = 80

QUESTION = """
import os, urllib.request
headers = {}
token = os.environ.get("RAY_AUTH_TOKEN")
path = os.environ.get("RAY_AUTH_TOKEN_PATH")
if not token and path:
    token = open(path).read().strip()
if token:
    headers["Authorization"] = "Bearer " + token
address = os.environ.get("RAY_API_SERVER_ADDRESS", "http://127.0.0.1:8265")
request = urllib.request.Request(address + "/api/jobs/", headers=headers)
print(urllib.request.urlopen(request, timeout=10).read().decode())
"""
"""Program for the Python of the head's container that prints Ray's list of jobs. It reads the token
from the container's environment, so that no argument contains it."""


@dataclass(frozen=True)
class RunningJob:
    """Running job or session."""

    id: str
    """Ray's id."""
    kind: str
    """`job` for a submitted job, `session` for an attached program."""
    status: str
    """`PENDING` or `RUNNING`."""
    entrypoint: str
    """Command, cut if it is long; "" if unknown."""
    since: float | None
    """Start in seconds since 1970; None before the start."""

    def __str__(self) -> str:
        text = f"{self.kind} {self.id} ({self.status.lower()})"
        return f"{text}: {self.entrypoint}" if self.entrypoint else text


def running_jobs(answer: str) -> list[RunningJob]:
    """Return the running jobs and sessions, by the JSON of `/api/jobs/` after other output.

    Raises:
        ValueError: the answer is not a list of jobs.
    """
    try:
        jobs = json.loads(answer[answer.index("[") :])
    except ValueError:
        raise ValueError(f"Ray's answer is not a list of jobs: {answer.strip()[:200]!r}") from None
    return _going_on(jobs)


def _going_on(jobs: Iterable[Mapping[str, Any]]) -> list[RunningJob]:
    running = [_running_job(job) for job in jobs if job.get("status") in _GOING_ON]
    return sorted(running, key=lambda job: (job.since or 0, job.id))


def _running_job(job: Mapping[str, Any]) -> RunningJob:
    submission = job.get("submission_id")
    started = job.get("start_time")
    return RunningJob(
        id=str(submission or job.get("job_id") or "?"),
        kind="job" if submission else "session",
        status=str(job["status"]),
        entrypoint=shortened(str(job.get("entrypoint") or "")),
        since=started / 1000 if started else None,
    )


def shortened(text: str) -> str:
    """Return a command on one line, a long one cut."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_ENTRYPOINT else f"{text[: _LONGEST_ENTRYPOINT - 1]}…"
