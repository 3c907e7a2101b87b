"""Rules of a berth's lifecycle: settings that have no effect."""

from collections.abc import Iterable
from dataclasses import dataclass

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.rules import Rules
from berth.components.lifecycle.settings import NEVER, UNLIMITED, Lifecycle, LifecycleShape


@dataclass(frozen=True)
class WrittenLifecycle:
    """A lifecycle as its settings have it, and complete, with the values of the defaults."""

    written: LifecycleShape
    complete: Lifecycle


LIFECYCLE = Rules[WrittenLifecycle](LifecycleShape)
"""Rules of a berth's lifecycle."""


@LIFECYCLE.problem("deleteAfter")
def deletion_without_expiry(lifecycle: WrittenLifecycle) -> str | None:
    """The time until deletion begins with the berth's expiry."""
    if lifecycle.written.delete_after in (None, NEVER) or lifecycle.complete.expires:
        return None
    return (
        "counts from the expiry of the berth, which never expires; add `expires`, for example 30d,"
        " or take deleteAfter out"
    )


@LIFECYCLE.problem("grace")
def grace_without_a_suspension_of_work(lifecycle: WrittenLifecycle) -> str | None:
    """Only expiry and the end of working hours suspend a berth on which something runs."""
    complete = lifecycle.complete
    if lifecycle.written.grace in (None, UNLIMITED) or complete.expires or complete.hours:
        return None
    return (
        "is for `expires` and `hours`, and the berth has neither: `idle` suspends only berths that"
        " run nothing; take grace out"
    )


def lifecycle_problems(
    written: LifecycleShape, lifecycle: Lifecycle, path: SettingPath
) -> Iterable[Problem]:
    """Return the problems of the lifecycle of a berth whose settings are at a path."""
    return LIFECYCLE.problems(WrittenLifecycle(written, lifecycle), (*path, "lifecycle"))
