"""Phases of an update: parts that can be repeated run without checkpoints of the state. Pure.

The engine writes the whole state before and after each step, so that the time of an update grows
with the square of a stack's resources. A berth consists of Kubernetes objects only, which the next
update takes over where the state does not know them (components/cluster/provider.py). So the state
needs to be written only once for all berths. Google Cloud's resources and Helm releases need it at
every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from berth.cli.engine import Only, Verb
from berth.components.plan.plan import BERTH
from berth.stacks.preview.report import Report

CHECKPOINT_BYTES_A_SECOND = 32e6
"""Speed at which the engine writes checkpoints: with them, an update that made 100 berths (820
resources of 5 kB in the end) took 103 s longer than without (two cores, local files)."""
RESOURCE_BYTES = 4000
"""Size of a resource in the state: a berth's six resources are 24 kB."""

_REMOTE_WRITE_SECONDS = 0.2
"""Low estimate of what a write of the state takes longer where it is not on this machine, each of
several calls. With a bucket that answers after 100 ms, an update that made 10 berths and wrote at
every step took 77 s longer than with a file."""
_WRITES_A_STEP = 2
_WORTH_SECONDS = 0.5
"""Seconds that a run without checkpoints has to save: it puts a mark on the cluster first and takes
it off afterward, which took 0.1 s."""
_SECOND_RUN_SECONDS = 3.0
_OF_A_BERTH = f"::{BERTH}$"


@dataclass(frozen=True)
class Phase:
    """Phase of an update, one run of the engine.

    Attributes:
        only: part of the stack that the run changes; None for all of it.
        checkpoints: whether the engine writes the state at every step.
    """

    only: Only | None = None
    checkpoints: bool = True


def phases_of(report: Report, verb: Verb, *, remote: bool = False) -> Sequence[Phase]:
    """Return the phases of an update.

    A run without checkpoints has to save more time than it costs: a mark on the cluster, and a
    second run of the engine where the plan changes more than berths. What a killed update left over
    is removed after the first phase, which makes sure that no other update runs, and before the
    operators are deleted or new berths need the room.

    Args:
        report: what the plan means.
        verb: `up` or `destroy`.
        remote: the state is not on this machine.
    """
    berths = [change for change in report.changes if _OF_A_BERTH in change.urn]
    others = [change for change in report.changes if _OF_A_BERTH not in change.urn]
    saved = seconds_of_checkpoints(len(berths), sum(report.counts.values()), remote=remote)
    parted = bool(others or report.known.left_over)
    # The plan of an engineer's own stack does not ask the cluster whether an update was killed.
    recovers = report.known.kind == "environment"
    fast = recovers and saved >= (_SECOND_RUN_SECONDS if parted else _WORTH_SECONDS)
    if not parted or not (fast or report.known.left_over):
        return [Phase(checkpoints=not fast or bool(others))]
    if verb == "destroy":
        return [Phase("berths", checkpoints=not fast), Phase()]
    # What berths depend on has to go after them, which one run alone gets right.
    if any(change.operation in _GOES for change in others):
        return [Phase()]
    return [Phase("platform"), Phase(checkpoints=not fast)]


_GOES: Sequence[Literal["delete", "replace"]] = ("delete", "replace")


def seconds_of_checkpoints(steps: int, resources: int, *, remote: bool = False) -> float:
    """Return the time that the checkpoints of some steps take.

    Args:
        steps: number of resources that are created or deleted, so that half of them are in the
            state on average.
        resources: number of resources of the stack, with those.
        remote: the state is not on this machine.
    """
    a_write = (resources - steps / 2) * RESOURCE_BYTES / CHECKPOINT_BYTES_A_SECOND
    return steps * _WRITES_A_STEP * (a_write + (_REMOTE_WRITE_SECONDS if remote else 0))
