"""Checks of a proof, and what its runs have in common: labels, waiting, counting."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from berth.components.cluster.api import ClusterApi, ClusterError, Object

Verdict = Literal["pass", "fail", "simulated", "skipped"]
"""Result of a check; `simulated` is a pass on a node that runs no containers."""

RUN_LABEL = "berth/verify-run"
"""Label with the run's id, on all objects of a run."""

SIMULATED = "simulated: this node runs no containers (KWOK)"

_LOOK_SECONDS = 2
_RETRY_SECONDS = 1.0
_GONE_SECONDS = 60
_POLL_SECONDS = 0.3
# Number of names shown where hundreds of nodes or workers are wrong.
_NAMED = 4


@dataclass(frozen=True)
class Check:
    """Verdict on one subject, with the evidence in one line."""

    name: str
    verdict: Verdict
    evidence: str


@dataclass
class Progress:
    """Lines about jobs, without repetitions; `report` gets a job's name and a line."""

    report: Callable[[str, str], None]
    _shown: dict[str, str] = field(default_factory=dict)

    def show(self, name: str, text: str) -> None:
        """Report a line that differs from the job's last one."""
        if text and self._shown.get(name) != text:
            self._shown[name] = text
            self.report(name, text)


def follow(
    api: ClusterApi, jobs: str, pods: str, run: str, deadline: float, look: Callable[[list[Object], list[Object]], bool]
) -> None:
    """Look at a run's jobs and pods until `look` returns True, or the deadline has passed.

    Events of a job wake the wait; a pod's changes are only seen by looking again.

    Raises:
        ClusterError: the API server cannot be asked when the deadline has passed.
    """
    selector = f"{RUN_LABEL}={run}"
    while True:
        rest = deadline - time.monotonic()
        try:
            found, version = api.list(jobs, labelSelector=selector)
            if look(found, api.list(pods, labelSelector=selector)[0]) or rest <= 0:
                return
            next(api.watch(jobs, version, max(1, min(_LOOK_SECONDS, int(rest))), labelSelector=selector), None)
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


def uid(thing: Object) -> str:
    """Return an object's uid."""
    return str(thing["metadata"]["uid"])


def listed(texts: Sequence[str]) -> str:
    """Return some of the texts, and the number of the others."""
    more = len(texts) - _NAMED
    return "; ".join(texts[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
