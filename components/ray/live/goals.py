"""Goals of waits: which state of a RayCluster, RayJob or RayService is waited for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from berth.components.cluster.api import RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES, Object
from berth.components.cluster.object_fields import ObjectKey
from berth.components.ray.live.cluster_condition import ClusterCondition, condition_of
from berth.components.ray.live.job_condition import job_condition
from berth.components.ray.live.live_objects import LiveObjects
from berth.components.ray.live.reasons import GONE, reasons_of, reasons_of_job, reasons_of_service
from berth.components.ray.live.service_condition import ServiceCondition, service_condition

AwaitedKind = Literal["RayCluster", "RayService", "RayJob"]
Until = Literal["ready", "running", "succeeded"]


@dataclass(frozen=True)
class Standing:
    """State of an object on its way to the goal of a wait."""

    text: str
    done: bool
    """The object's status says that the goal is reached."""
    hopeless: bool = False
    """The goal can never be reached."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Goal:
    """Goal of a wait for an object of one kind."""

    path: str
    standing: Callable[[Object], Standing]
    """Returns the state of an object."""
    reasons: Callable[[LiveObjects, ObjectKey], list[str]]
    """Returns why an object has not reached the goal; empty if it has."""


@dataclass(frozen=True)
class Awaited:
    """Resource that an update waits for, until a state, for a time as people write it: `10m`."""

    kind: AwaitedKind
    until: Until
    key: ObjectKey
    timeout: str

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(self.key)}"

    @property
    def goal(self) -> Goal:
        """Goal of the wait."""
        return GOALS[self.kind, self.until]

    def problem(self, reasons: Sequence[str]) -> str:
        """Return the error text: the resource is not ready, with the reasons."""
        missed = "does not exist" if GONE in reasons else self._missed
        return f"{self} {missed}: {'; '.join(reasons)}"

    @property
    def _missed(self) -> str:
        """Goal that the resource has not reached, with the length of the wait."""
        match self.until:
            case "ready":
                return f"is not ready after {self.timeout}"
            case "running":
                return f"does not run (waited for {self.timeout} at most)"
            case "succeeded":
                return f"has not succeeded (waited for {self.timeout} at most)"

    def failed_before(self, reasons: Sequence[str]) -> str:
        """Return a warning that a RayJob of an earlier update has failed; this update goes on."""
        return f"{self} of an earlier update failed: {'; '.join(reasons)}"

    def put_off(self, stack: str, going: Sequence[str]) -> str:
        """Return a warning that an update does not wait while namespaces go."""
        return (
            f"{self} is not waited for: its pods find no node while those of {', '.join(going)} are"
            f" there, which go at the end of this update; `berth status -s {stack}` says when it is"
            " ready"
        )


def _ready(condition: ClusterCondition | ServiceCondition) -> Standing:
    return Standing(str(condition), condition.ready)


def _running(job: Object) -> Standing:
    condition = job_condition(job)
    return Standing(str(condition), condition.running, condition.failed)


def _succeeded(job: Object) -> Standing:
    condition = job_condition(job)
    return Standing(str(condition), condition.succeeded, condition.failed)


GOALS: dict[tuple[AwaitedKind, Until], Goal] = {
    ("RayCluster", "ready"): Goal(
        RAY_CLUSTERS, lambda item: _ready(condition_of(item)), reasons_of
    ),
    ("RayService", "ready"): Goal(
        RAY_SERVICES, lambda item: _ready(service_condition(item)), reasons_of_service
    ),
    ("RayJob", "running"): Goal(RAY_JOBS, _running, reasons_of_job),
    ("RayJob", "succeeded"): Goal(
        RAY_JOBS, _succeeded, partial(reasons_of_job, until_its_end=True)
    ),
}
"""Goals of waits, by kind and state."""
