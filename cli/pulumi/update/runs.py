"""Runs of the engine for an update: one, or two where many berths are made or removed.

The engine writes the whole state before and after each step, so that the time of an update grows
with the square of a stack's resources. A berth consists of Kubernetes objects only, which the next
update takes over where the state does not know them (components/cluster/provider.py). So a run for
many berths writes the state once, at its end. Google Cloud's resources and Helm releases are in the
state at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from berth.cli.pulumi.program import Interrupts, Outcome
from berth.cli.pulumi.program import run as run_pulumi
from berth.cli.pulumi.update.question import Verb
from berth.components.plan.plan import BERTH, Event
from berth.stacks.preview.report import Report
from berth.stacks.program import NO_WAIT

MANY = 20
"""Number of berths from which on a run of their own is faster."""

_OF_A_BERTH = f"::{BERTH}$"
_BERTHS = f"**::{BERTH}**"
"""Pattern of the URNs of all berths and of what is in them."""
_PARALLEL = "64"
"""Operations at once on berths: most of them only wait. The engine's default is four for each
core."""


@dataclass(frozen=True)
class Run:
    """Run of `pulumi up` or `pulumi destroy`.

    Attributes:
        options: its options, beside those of every run.
        environment: its variables, beside those of this process.
    """

    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


WHOLE = Run()
_BERTHS_ALONE = Run(("--target", _BERTHS, "--parallel", _PARALLEL), {"PULUMI_SKIP_CHECKPOINTS": "true"})
# The program waits in the next run, which has the berths as the settings want them.
_THE_REST = Run(("--exclude", _BERTHS), {NO_WAIT: "true"})


def runs_of(report: Report, verb: Verb) -> Sequence[Run]:
    """Return the runs for a plan."""
    of_berths = [change for change in report.changes if _OF_A_BERTH in change.urn]
    others = [change for change in report.changes if _OF_A_BERTH not in change.urn]
    many = {change.component for change in of_berths if change.operation in ("create", "delete")}
    if len(many) < MANY:
        return [WHOLE]
    if verb == "destroy":
        return [_BERTHS_ALONE, WHOLE]
    # What berths depend on goes after them, which only one run for all gets right.
    if any(change.operation in ("delete", "replace") for change in others):
        return [WHOLE]
    return [_THE_REST, _BERTHS_ALONE]


def carry_out(
    stack: str, verb: Verb, runs: Sequence[Run], see: Callable[[Event], None], interrupts: Interrupts
) -> Outcome:
    """Run the engine; return the outcome of the last run: the first one that fails is the last."""
    outcome = Outcome()
    for run in runs:
        arguments = [verb, "--yes", "--skip-preview", "--stack", stack, *run.options]
        outcome = run_pulumi(arguments, see, interrupts, run.environment)
        if outcome.code or interrupts.count:
            break
    return outcome
