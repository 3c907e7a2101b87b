"""Engineer's own stack in an update of an environment with all own stacks."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.engine import EngineRun, begun_preview
from berth.cli.pulumi.failures import errors_of, failure_of
from berth.cli.pulumi.interrupts import Interrupts
from berth.cli.pulumi.preview.plan import (
    Loaded,
    StackPlan,
    events_of,
    policies_of,
    pools_of,
    refuse_edited,
)
from berth.cli.reach.up_already import is_up_already
from berth.components.core.errors import BerthError
from berth.components.plan.plan import plan_of
from berth.stacks.preview.report import PreviewContext, Report, report_of
from berth.stacks.program import JUDGED
from berth.stacks.program.judged import digest_of_files

OwnResult = Literal["up", "unchanged", "failed", "not begun"]

RESULTS: Sequence[OwnResult] = ("up", "unchanged", "failed", "not begun")


@dataclass
class OwnStack:
    """Engineer's own stack in an update of many; one that the backend lacks has no plan."""

    stack: str
    loaded: Loaded
    planned: StackPlan | None = None
    result: OwnResult = "not begun"
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def plan(self, interrupts: Interrupts) -> str:
        """Plan the update; return a line for people, or "" for none."""
        try:
            events = events_of(self.stack, begun_preview(self.stack), interrupts)
            refuse_edited(self.stack, self.loaded, events)
        except BerthError as error:
            return self._fail([str(error)])
        context = PreviewContext(
            self.stack,
            "engineer",
            pools_before=pools_of(self.loaded),
            policies=policies_of(self.loaded),
        )
        report = report_of(plan_of(events), context)
        self.planned = StackPlan(report, events, self.loaded, {})
        return ""

    @property
    def report(self) -> Report | None:
        """Meaning of the plan; None without one."""
        return self.planned.report if self.planned else None

    def update(self, interrupts: Interrupts) -> str:
        """Run `pulumi up`, in a stack of the backend that is made where there is none."""
        began = time.monotonic()
        if self.planned and is_up_already(self.stack, self.planned):
            self.result = "unchanged"
            return f"✓ {self.stack}: unchanged"
        try:
            if self.planned is None:
                pulumi_stack.create_stack(self.stack)
            arguments = ["up", "--yes", "--skip-preview", "--stack", self.stack]
            engine = EngineRun(arguments, {JUDGED: digest_of_files(self.loaded)})
            outcome = engine.outcome(lambda _: None, interrupts)
        except BerthError as error:
            return self._fail([str(error)])
        self.seconds = time.monotonic() - began
        if outcome.code:
            errors = errors_of(outcome.events)
            return self._fail(errors or [str(failure_of(self.stack, outcome))])
        changes_nothing = self.report is not None and self.report.verdict == "nothing"
        self.result = "unchanged" if changes_nothing else "up"
        return f"✓ {self.stack}: {self.result}, {self.seconds:.0f} s"

    @property
    def document(self) -> dict[str, Any]:
        """The result for programs."""
        return {
            "stack": self.stack,
            "result": self.result,
            "seconds": round(self.seconds, 1),
            "errors": self.errors,
        }

    def _fail(self, errors: list[str]) -> str:
        self.result = "failed"
        self.errors = errors
        return f"✗ {self.stack}: {errors[0]}"
