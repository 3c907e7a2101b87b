"""Update of one stack: plan, question, runs of the engine, summary."""

from __future__ import annotations

from berth.cli.pulumi.preview.plan import planned
from berth.cli.pulumi.preview.tree import print_tree
from berth.cli.pulumi.update.question import Options, refusal, refused
from berth.cli.pulumi.update.runs import update
from berth.cli.shell.console import err, print_warnings
from berth.components.core.errors import BAD_INPUT
from berth.components.plan.effect import Level


def up(stack: str, options: Options) -> int:
    """Bring a stack up; return the exit code."""
    report = planned(stack)
    print_warnings(report.warnings)
    if report.verdict != "nothing":
        print_tree(report, err)
    if report.against_policies:
        err.print("this plan is against a policy; nothing was done", markup=False)
        return BAD_INPUT
    loses = report.level == Level.DESTROYS
    code = None if report.verdict == "nothing" else refusal(f"berth up -s {stack}", options, loses=loses)
    if code is not None:
        return refused(stack, "up", code, options, list(map(str, report.sitting(Level.DESTROYS))))
    return update(stack, "up", report, options)
