"""How far an update is, by component, from the engine's events. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.cli.preview.engine import Event
from berth.stacks.preview.report import Report

OTHERS = "other resources"

# What makes a step that changes something complete; a replacement has further steps that don't.
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
        title: what it is: `KubeRay operator`, `berth alice`.
        planned: how many of its resources the plan changes.
        done: URNs of those that are changed, with what was done: `created`.
        began: when the first of them was begun; None before.
        ended: when the last of them was done; None before.
        failed: one of them failed.
        now: what the program or a provider says of it at present.
    """

    title: str
    planned: int
    done: dict[str, str] = field(default_factory=dict)
    began: float | None = None
    ended: float | None = None
    failed: bool = False
    now: str = ""

    @property
    def complete(self) -> bool:
        """All that was planned is done."""
        return len(self.done) >= self.planned and not self.failed

    @property
    def seconds(self) -> float:
        """How long it took, from its first change to its last."""
        return (self.ended or 0.0) - (self.began or 0.0) if self.ended is not None else 0.0


class Tracker:
    """Follows an update."""

    def __init__(self, report: Report, clock: Callable[[], float]) -> None:
        """Begin with what is planned.

        Args:
            report: the plan.
            clock: seconds since whenever.
        """
        self._clock = clock
        self._titles = {change.step.urn: part.title for part in report.parts for change in part.changes}
        self.components = {part.title: Component(part.title, len(part.changes)) for part in report.parts}
        self.errors: dict[str, list[str]] = {}
        self.warnings: list[str] = []
        self.counts: dict[str, int] = {}
        self.waiting: dict[str, str] = {}

    def see(self, event: Event) -> list[Component]:
        """Take an event in; the components that it completes."""
        if "resourcePreEvent" in event:
            self._begin(event["resourcePreEvent"]["metadata"])
        elif "resOutputsEvent" in event:
            return self._end(event["resOutputsEvent"]["metadata"])
        elif "resOpFailedEvent" in event:
            component = self._of(event["resOpFailedEvent"]["metadata"]["urn"])
            component.failed = True
            component.ended = self._clock()
        elif "diagnosticEvent" in event:
            self._hear(event["diagnosticEvent"])
        elif "summaryEvent" in event:
            self.counts = dict(event["summaryEvent"].get("resourceChanges") or {})
        return []

    def _of(self, urn: str) -> Component:
        title = self._titles.get(urn, OTHERS)
        return self.components.setdefault(title, Component(title, 0))

    def _begin(self, metadata: Mapping[str, Any]) -> None:
        if metadata["urn"] not in self._titles:
            return
        component = self._of(metadata["urn"])
        if component.began is None:
            component.began = self._clock()

    def _end(self, metadata: Mapping[str, Any]) -> list[Component]:
        urn, done = metadata["urn"], _DONE.get(metadata["op"])
        if done is None or urn not in self._titles:
            return []
        component = self._of(urn)
        before = component.complete
        component.done[urn] = done
        component.ended = self._clock()
        return [component] if component.complete and not before else []

    def _hear(self, diagnostic: Mapping[str, Any]) -> None:
        text, urn = str(diagnostic["message"]).strip(), str(diagnostic.get("urn") or "")
        match diagnostic.get("severity"):
            case "error":
                self.errors.setdefault(self._titles.get(urn, urn.rsplit("::", 1)[-1]), []).append(text)
            case "warning":
                if text not in self.warnings:
                    self.warnings.append(text)
            # The program says so of a RayCluster while it waits for it (stacks/waiting.py).
            case "info" | "info#err" if diagnostic.get("ephemeral") and urn and text:
                self.waiting[urn.rsplit("::", 1)[-1]] = text
            case _:
                pass
