"""Runs of the engine for an update: one, or two where many berths are made or removed.

The engine writes the whole state before and after each step, so that the time of an update grows
with the square of a stack's resources. A berth consists of Kubernetes objects only, which the next
update takes over where the state does not know them (components/cluster/provider.py). So a run for
many berths writes the state once, at its end. Google Cloud's resources and Helm releases are in the
state at every step.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from berth.cli.pulumi.engine import EngineRun, Outcome
from berth.cli.pulumi.failures import failure_of
from berth.cli.pulumi.interrupts import Interrupts
from berth.cli.pulumi.preview.plan import StackPlan
from berth.cli.pulumi.stack import backend_url
from berth.cli.pulumi.update.progress import Progress
from berth.cli.pulumi.update.question import Options, Verb
from berth.cli.pulumi.update.score import observed_clusters, score_of
from berth.cli.pulumi.update.summary import Result, print_failure, print_success
from berth.cli.pulumi.update.tracker import Tracker
from berth.cli.shell.console import print_warnings
from berth.components.plan.pending import remedy_of_pending
from berth.components.plan.plan import BERTH
from berth.stacks.preview.report import Report
from berth.stacks.program import JUDGED, NO_WAIT

MANY = 20
"""Number of berths from which on a run of their own is faster."""
MANY_IN_A_BUCKET = 2
"""The same where the state is in a bucket, to which each write is some requests."""
_BUCKETS = ("gs", "s3", "azblob")

_OF_A_BERTH = f"::{BERTH}$"
_BERTHS = f"**::{BERTH}**"
"""Pattern of the URNs of all berths and of what is in them."""
_PARALLEL = "64"
"""Operations at once on berths: most of them only wait. The engine's default is four for each
core."""


Run = tuple[Sequence[str], Mapping[str, str]]
"""Options and variables of a run of the engine, beside those of every run."""

WHOLE: Run = (), {}
_BERTHS_ALONE: Run = (
    ("--target", _BERTHS, "--parallel", _PARALLEL),
    {"PULUMI_SKIP_CHECKPOINTS": "true"},
)
# The program waits in the next run, which has the berths as the settings want them.
_THE_REST: Run = ("--exclude", _BERTHS), {NO_WAIT: "true"}


def runs_of(report: Report, verb: Verb, state: Callable[[], str]) -> Sequence[Run]:
    """Return the runs for a plan; `state` gives the URL of the state's backend."""
    berths: set[str] = set()
    replaces_others = False
    for change in report.changes:
        if _OF_A_BERTH not in change.urn:
            replaces_others |= change.operation in ("delete", "replace")
        elif change.operation in ("create", "delete"):
            berths.add(change.component)
    if not _are_many(len(berths), state):
        return [WHOLE]
    if verb == "destroy":
        return [_BERTHS_ALONE, WHOLE]
    # What berths depend on goes after them, which only one run for all gets right.
    if replaces_others:
        return [WHOLE]
    return [_THE_REST, _BERTHS_ALONE]


def _are_many(berths: int, state: Callable[[], str]) -> bool:
    """Return whether a number of berths is faster in a run of its own."""
    if berths < MANY_IN_A_BUCKET:
        return False
    return berths >= MANY or urlsplit(state()).scheme in _BUCKETS


def run_update(
    stack: str,
    verb: Verb,
    plan: StackPlan,
    options: Options,
    more: Mapping[str, Any] | None = None,
) -> int:
    """Run an update that was agreed to, and sum it up; return the exit code.

    The cluster shows whether the plan was right; `more` goes into the document for programs.
    """
    report = plan.report
    tracker = Tracker(report, time.monotonic)
    outcome = Outcome()
    progress = Progress(tracker, f"berth {verb} -s {stack}")
    before = observed_clusters(plan.cluster)
    began = time.monotonic()
    with Interrupts() as interrupts, progress.shown():
        for more_options, variables in runs_of(report, verb, backend_url):
            arguments = [verb, "--yes", "--skip-preview", "--stack", stack, *more_options]
            engine = EngineRun(arguments, {**variables, JUDGED: plan.judged})
            outcome = engine.outcome(progress.see, interrupts)
            if outcome.code or interrupts.count:
                break
    warnings = [remedy_of_pending(warning, stack) or warning for warning in tracker.warnings]
    print_warnings([warning for warning in warnings if warning not in report.warnings])
    result = Result(stack, verb, tracker, time.monotonic() - began, options, dict(more or {}))
    if outcome.code:
        return print_failure(result, str(failure_of(stack, outcome)), interrupts)
    score = None
    after = observed_clusters(plan.cluster)
    if before is not None and after is not None:
        score = score_of(report, tracker.changed, before, after)
    return print_success(result, score)
