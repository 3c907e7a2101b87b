"""State of an update by component, from the engine's events. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from berth.cli.pulumi.failures import SUMS_UP
from berth.cli.pulumi.update.plugin_words import words_of_plugin
from berth.cli.pulumi.update.slow import SlowSteps
from berth.components.core.plain_secrets import SECRET
from berth.components.plan.paths import revealed
from berth.components.plan.plan import STACK, Event, is_of_thing
from berth.stacks.preview.report import Report
from berth.stacks.program import DIGEST_OUTPUT, SETTINGS_OUTPUT

WORDS = {
    "create": "created",
    "update": "changed",
    "replace": "replaced",
    "delete": "deleted",
    "same": "unchanged",
}
"""Operations that are done, in words."""

# Steps that complete a change; a replacement has further ones.
_DONE = {
    "create": "create",
    "create-replacement": "replace",
    "replace": "replace",
    "update": "update",
    "delete": "delete",
}


@dataclass
class Component:
    """A component with its changes, such as `KubeRay operator` or `berth alice`."""

    title: str
    planned: int
    """Number of its resources that the plan changes."""
    done: dict[str, str] = field(default_factory=dict)
    """URNs of changed resources, with the operation."""
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
        return self.ended - self.began if self.began is not None and self.ended is not None else 0.0


class Tracker:
    """Components of an update, kept up to date by events, such as those of a preview.

    Attributes:
        errors: errors, each once, behind the title of their component or the name of a resource.
        changed: URNs of changed resources that exist outside of Pulumi, with the operation.
        waiting: states of resources that the program waits for, by name.
        outputs: the stack's outputs that are not secret.
        slow: steps that take long.
    """

    def __init__(
        self, report: Report, clock: Callable[[], float], events: Iterable[Event] = ()
    ) -> None:
        self._clock = clock
        self._titles: dict[str, str] = {}
        for part in report.parts:
            self._titles.update((change.urn, part.title) for change in part.changes)
        self.components = {
            part.title: Component(part.title, len(part.changes)) for part in report.parts
        }
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self.changed: dict[str, str] = {}
        self.unchanged = report.counts["same"]
        self.waiting: dict[str, str] = {}
        self.outputs: dict[str, Any] = {}
        self.slow = SlowSteps(clock, report.changes)
        for event in events:
            self.see(event)

    def see(self, event: Event) -> Component | None:
        """Take an event in; return the planned component that it is about, if there is one."""
        self.slow.see(event)
        component = None
        if begun := event.get("resourcePreEvent"):
            component = self._of(begun["metadata"]["urn"])
            if component and component.began is None:
                component.began = self._clock()
        elif ended := event.get("resOutputsEvent"):
            component = self._end(ended["metadata"])
        elif failed := event.get("resOpFailedEvent"):
            component = self._of(failed["metadata"]["urn"])
            if component:
                component.failed = True
                component.ended = self._clock()
        elif diagnostic := event.get("diagnosticEvent"):
            self._hear(diagnostic)
        return component

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of resources by operation, without zeros, counted as the plan counts them."""
        unchanged = {"same": self.unchanged} if self.unchanged else {}
        return dict(sorted(Counter(self.changed.values()).items())) | unchanged

    def _of(self, urn: str) -> Component | None:
        return self.components.get(self._titles.get(urn, ""))

    def _end(self, step: Event) -> Component | None:
        if step["type"] == STACK and step.get("new"):
            outputs = revealed(step["new"].get("outputs") or {})
            self.outputs = {
                name: value
                for name, value in outputs.items()
                if value != SECRET and name not in (DIGEST_OUTPUT, SETTINGS_OUTPUT)
            }
        component = self._of(step["urn"])
        done = _DONE.get(step["op"])
        if done and is_of_thing(step):
            self.changed[step["urn"]] = done
        if component and done:
            component.done[step["urn"]] = done
            component.ended = self._clock()
        return component

    def _hear(self, diagnostic: Event) -> None:
        text = diagnostic["message"].strip()
        urn = diagnostic.get("urn") or ""
        name = urn.rsplit("::", 1)[-1]
        severity = diagnostic["severity"]
        if severity == "error" and text not in SUMS_UP:
            title = self._titles.get(urn, name)
            error = f"{title}: {text}" if title else text
            if error not in self.errors:
                self.errors.append(error)
        elif severity == "warning" and text not in self.warnings:
            self.warnings.append(text)
        elif urn and _is_of_a_wait(diagnostic) and (words := words_of_plugin(text)):
            self.waiting[name] = words


def _is_of_a_wait(diagnostic: Event) -> bool:
    """Return whether a message is about an object that something waits for.

    The program waits for RayClusters (stacks/program/waiting.py), the kubernetes plugin for others.
    """
    return diagnostic["severity"].startswith("info") and bool(diagnostic.get("ephemeral"))
