"""State of an update by component, from the engine's events. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pulumi.automation import DiagnosticEvent, EngineEvent, StepEventMetadata

from berth.cli import backend
from berth.stacks.preview.report import Report

OTHERS = "other resources"

# Steps that complete a change; a replacement has further ones.
_DONE = {
    "create": "created",
    "create-replacement": "replaced",
    "replace": "replaced",
    "update": "changed",
    "delete": "deleted",
    "discard": "deleted",
}


@dataclass
class Component:
    """A component with its changes.

    Attributes:
        title: its title: `KubeRay operator`, `berth alice`.
        planned: number of its resources that the plan changes.
        done: URNs of changed resources, with the change: `created`.
        began: start of the first change; None before.
        ended: end of the last change; None before.
        failed: a change failed.
    """

    title: str
    planned: int
    done: dict[str, str] = field(default_factory=dict)
    began: float | None = None
    ended: float | None = None
    failed: bool = False

    @property
    def complete(self) -> bool:
        """Whether all planned changes are done."""
        return len(self.done) >= self.planned and not self.failed

    @property
    def seconds(self) -> float:
        """Seconds from its first change to its last."""
        return (self.ended or 0.0) - (self.began or 0.0) if self.ended is not None else 0.0


class Tracker:
    """Components of an update, kept up to date by events."""

    def __init__(self, report: Report, clock: Callable[[], float]) -> None:
        """Start with the plan.

        Args:
            report: the plan.
            clock: a monotonic clock.
        """
        self._clock = clock
        self._titles = {change.urn: part.title for part in report.parts for change in part.changes}
        self.components = {part.title: Component(part.title, len(part.changes)) for part in report.parts}
        self.errors: dict[str, list[str]] = {}
        self.warnings: list[str] = []
        self.counts: dict[str, int] = {}
        self.waiting: dict[str, str] = {}

    def see(self, event: EngineEvent) -> list[Component]:
        """Take an event in; return the components that it completes."""
        if event.resource_pre_event:
            self._begin(event.resource_pre_event.metadata)
        elif event.res_outputs_event:
            return self._end(event.res_outputs_event.metadata)
        elif event.res_op_failed_event:
            component = self._of(event.res_op_failed_event.metadata.urn)
            component.failed = True
            component.ended = self._clock()
        elif event.diagnostic_event:
            self._hear(event.diagnostic_event)
        elif event.summary_event:
            counts = {str(operation): count for operation, count in event.summary_event.resource_changes.items()}
            # What the first phase of an update has changed, the second one finds unchanged.
            before = {operation: count for operation, count in self.counts.items() if operation != "same"}
            self.counts = dict(Counter(before) + Counter(counts))
        return []

    def fail(self, name: str, error: str) -> None:
        """Take an error of a berth's resource in, which the cluster has and the engine does not."""
        title = f"berth {name}"
        self.errors.setdefault(title if title in self.components else name, []).append(error)

    def _of(self, urn: str) -> Component:
        title = self._titles.get(urn, OTHERS)
        return self.components.setdefault(title, Component(title, 0))

    def _begin(self, step: StepEventMetadata) -> None:
        if step.urn in self._titles:
            component = self._of(step.urn)
            if component.began is None:
                component.began = self._clock()

    def _end(self, step: StepEventMetadata) -> list[Component]:
        done = _DONE.get(step.op.value)
        if done is None or step.urn not in self._titles:
            return []
        component = self._of(step.urn)
        before = component.complete
        component.done[step.urn] = done
        component.ended = self._clock()
        return [component] if component.complete and not before else []

    def _hear(self, diagnostic: DiagnosticEvent) -> None:
        text, urn = diagnostic.message.strip(), diagnostic.urn or ""
        name = urn.rsplit("::", 1)[-1]
        match diagnostic.severity:
            case "error" if not backend.sums_up(text):
                self.errors.setdefault(self._titles.get(urn, name), []).append(text)
            case "warning":
                if text not in self.warnings:
                    self.warnings.append(text)
            # The program reports a RayCluster that it waits for (stacks/program/waiting.py).
            case "info" | "info#err" if diagnostic.ephemeral and urn and text:
                self.waiting[name] = text
            case _:
                pass
