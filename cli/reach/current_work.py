"""Work that runs on a berth, asked of Ray itself in the head's container."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.kubectl import kubectl
from berth.cli.reach.pods import HEAD_CONTAINER
from berth.components.cluster.api import Object
from berth.components.cluster.pods import runs_here, why_not_ready
from berth.components.core.errors import BerthError
from berth.components.programs.jobs import QUESTION, RunningJob, running_jobs
from berth.components.programs.logins import open_login


@dataclass(frozen=True)
class CurrentWork:
    """Work that runs on one berth."""

    jobs: Sequence[RunningJob] = field(default_factory=tuple)
    """Jobs and attached sessions."""
    pods: int = 0
    unknown: str = ""
    """Why Ray could not be asked; "" if it answered or nothing can run."""
    note: str = ""
    login: str = ""
    """An open login, in words; "" for none."""

    @property
    def work(self) -> list[str]:
        """Jobs, sessions and logins, a line each."""
        lines = list(map(str, self.jobs))
        if self.login:
            lines.append(self.login)
        return lines


def running_on(berth: LiveBerth) -> CurrentWork:
    """Return the work that runs on a berth."""
    pods = berth.pods()
    head = _head_of(pods)
    if head is None:
        return CurrentWork(pods=len(pods), note="it has no head pod, so nothing runs on it")
    if berth.is_simulated(head) and not runs_here(head):
        note = "its nodes are simulated, and nobody has started its Ray: nothing runs on it"
        return CurrentWork(pods=len(pods), note=note)
    if (head.get("status") or {}).get("phase") == "Pending":
        return CurrentWork(
            pods=len(pods), note="its head has not started yet, so nothing runs on it"
        )
    if reason := why_not_ready(head, "head"):
        return CurrentWork(pods=len(pods), unknown=reason)
    login = open_login(berth.cluster["metadata"].get("annotations") or {}, datetime.now(UTC))
    try:
        return CurrentWork(_jobs(berth, head["metadata"]["name"]), len(pods), login=login)
    except (BerthError, ValueError) as error:
        return CurrentWork(pods=len(pods), unknown=str(error), login=login)


def _jobs(berth: LiveBerth, head: str) -> list[RunningJob]:
    """Return the jobs and sessions that Ray knows, asked in the head's container."""
    question = ["python", "-c", QUESTION]
    with kubectl(berth.environment.kubeconfig) as program:
        answer = program.execute(berth.namespace, head, HEAD_CONTAINER, question)
    return running_jobs(answer)


def _head_of(pods: Iterable[Object]) -> Object | None:
    for pod in pods:
        if pod["metadata"]["labels"].get("ray.io/node-type") == "head":
            return pod
    return None
