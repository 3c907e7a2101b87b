"""Update of one stack: what would be lost, the question, the run."""

import time
from pathlib import Path

from berth.cli.pulumi.preview.plan import planned
from berth.cli.pulumi.preview.saved import hold, read
from berth.cli.pulumi.preview.tree import print_tree
from berth.cli.pulumi.program import Engine
from berth.cli.pulumi.update.question import Options, refusal, refused
from berth.cli.pulumi.update.runs import update
from berth.cli.pulumi.update.summary import Result, print_success
from berth.cli.pulumi.update.tracker import Tracker
from berth.cli.reach.update.unchanged import is_up
from berth.cli.shell.console import err, print_warnings
from berth.components.core.errors import BAD_INPUT
from berth.components.plan.effect import Level


def up(stack: str, options: Options, engine: Engine | None = None, reviewed: Path | None = None) -> int:
    """Bring a stack up, by a preview that may have begun; return the exit code.

    Raises:
        BadInputError: the update would do more than the reviewed plan, which a file has.
    """
    began = time.monotonic()
    saved = read(reviewed, stack) if reviewed else None
    plan = planned(stack, engine=engine)
    report = plan.report
    print_warnings(report.warnings)
    if report.verdict != "nothing":
        print_tree(report, err)
    if report.against_policies:
        err.print("this plan is against a policy; nothing was done")
        return BAD_INPUT
    if saved:
        hold(plan, saved)
    if is_up(stack, plan):
        tracker = Tracker(report, time.monotonic, plan.events)
        return print_success(Result(stack, "up", tracker, time.monotonic() - began, options, {}))
    loses = report.level == Level.DESTROYS
    code = None if report.verdict == "nothing" else refusal(f"berth up -s {stack}", options, loses=loses)
    if code is not None:
        return refused(stack, "up", code, options, list(map(str, report.sitting(Level.DESTROYS))))
    return update(stack, "up", report, options, cluster=plan.cluster)
