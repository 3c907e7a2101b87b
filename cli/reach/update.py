"""Update of one stack: what would be lost, the question, and the run."""

import time
from pathlib import Path

from berth.cli.pulumi.engine import EngineRun
from berth.cli.pulumi.lock import refuse_locked
from berth.cli.pulumi.preview.beyond import refuse_beyond_plan
from berth.cli.pulumi.preview.plan import planned_update
from berth.cli.pulumi.preview.saved import read_plan
from berth.cli.pulumi.preview.tree import print_tree
from berth.cli.pulumi.update.question import Options, print_refusal, refusal_code
from berth.cli.pulumi.update.runs import run_update
from berth.cli.pulumi.update.summary import Result, print_success
from berth.cli.pulumi.update.tracker import Tracker
from berth.cli.reach.reservations import ask_reservations
from berth.cli.reach.up_already import is_up_already
from berth.cli.shell.console import err, print_warnings
from berth.components.core.errors import BAD_INPUT
from berth.components.plan.effect import Level


def bring_up(
    stack: str, options: Options, engine: EngineRun | None = None, reviewed: Path | None = None
) -> int:
    """Bring a stack up; return the exit code.

    Args:
        stack: name of the stack.
        options: what is agreed to, and how the result is printed.
        engine: a preview that has begun already, of a stack that is not locked.
        reviewed: file of a plan that the update must not exceed.

    Raises:
        BadInputError: the update goes beyond the reviewed plan, or settings have problems.
        BerthError: the stack is locked, the engine's preview fails, or a reservation has too few
            free machines.
    """
    began = time.monotonic()
    if engine is None:
        refuse_locked(stack)
    saved = read_plan(reviewed, stack) if reviewed else None
    plan = planned_update(stack, engine=engine)
    report = plan.report
    reservations = ask_reservations(plan)
    print_warnings([*report.warnings, *reservations.not_asked])
    if report.verdict != "nothing":
        print_tree(report, err)
    if report.against_policies:
        err.print("this plan is against a policy; nothing was done")
        return BAD_INPUT
    if saved:
        refuse_beyond_plan(plan, saved)
    reservations.refuse_if_lacking(stack)
    if is_up_already(stack, plan):
        tracker = Tracker(report, time.monotonic, plan.events)
        return print_success(Result(stack, "up", tracker, time.monotonic() - began, options, {}))
    if report.verdict != "nothing":
        loses = report.level == Level.DESTROYS
        code = refusal_code(f"berth up -s {stack}", options, loses=loses)
        if code is not None:
            lost = list(map(str, report.sitting(Level.DESTROYS)))
            return print_refusal(stack, "up", code, options, lost)
    return run_update(stack, "up", plan, options)
