"""Run of a proof on a cluster: its objects are made, waited for, counted and removed."""

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from berth.components.cluster.api import ClusterApi, ClusterError, Object
from berth.components.proof.checks import RUN_LABEL

_LOOK_SECONDS = 2
_RETRY_SECONDS = 1.0
_GONE_SECONDS = 60
_POLL_SECONDS = 0.3


@dataclass(kw_only=True)
class Run(ABC):
    """Run of a proof on a cluster; its objects stay until `clean_up`."""

    api: ClusterApi
    timeout: str
    """How long to wait for the jobs, for people: `10m`."""
    seconds: int
    """The same in seconds."""
    report: Callable[[str, str], None]
    """Called with a name and the state of its job, whenever that changes."""
    run: str = field(default_factory=lambda: secrets.token_hex(3))
    """A unique id."""
    _shown: dict[str, str] = field(default_factory=dict, init=False)

    @abstractmethod
    def clean_up(self) -> str | None:
        """Remove this run's objects, and no others; return a sentence about objects that stay."""

    def objects(self, path: str) -> tuple[list[Object], str]:
        """Return this run's objects in a collection, and the version to watch from."""
        return self.api.list(path, labelSelector=f"{RUN_LABEL}={self.run}")

    def remove(self, path: str) -> None:
        """Delete this run's objects in a collection."""
        for item in self.objects(path)[0]:
            self.api.delete(f"{path}/{item['metadata']['name']}", uid_of(item))

    def report_state(self, name: str, text: str) -> None:
        """Report a state that differs from the job's last one."""
        if text and self._shown.get(name) != text:
            self._shown[name] = text
            self.report(name, text)

    def follow(
        self,
        jobs: str,
        pods: str,
        deadline: float,
        look: Callable[[list[Object], list[Object]], bool],
    ) -> None:
        """Look at the jobs and pods until `look` returns True, or the deadline has passed.

        Events of a job wake the wait; a pod's changes are only seen by looking again.

        Args:
            jobs: path of the collection of jobs.
            pods: path of the collection of pods.
            deadline: end of the wait, by the monotonic clock.
            look: called with this run's jobs and pods; returns whether all have ended.

        Raises:
            ClusterError: the API server cannot be asked when the deadline has passed.
        """
        while True:
            rest = deadline - time.monotonic()
            try:
                live_jobs, version = self.objects(jobs)
                if look(live_jobs, self.objects(pods)[0]) or rest <= 0:
                    return
                limit = max(1, min(_LOOK_SECONDS, int(rest)))
                events = self.api.events(
                    jobs, version, limit, labelSelector=f"{RUN_LABEL}={self.run}"
                )
                next(events, None)
            except ClusterError:
                if rest <= 0:
                    raise
                time.sleep(_RETRY_SECONDS)


def until_gone(there: Callable[[], bool], what: str) -> str | None:
    """Wait until an object is gone; return a sentence if it still exists when patience ends."""
    deadline = time.monotonic() + _GONE_SECONDS
    while there():
        if time.monotonic() >= deadline:
            return f"{what} is still being removed after {_GONE_SECONDS} s"
        time.sleep(_POLL_SECONDS)
    return None


def uid_of(thing: Object) -> str:
    """Return an object's uid."""
    return str(thing["metadata"]["uid"])
