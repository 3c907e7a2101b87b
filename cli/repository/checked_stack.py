"""Result of the check of a stack's settings."""

from dataclasses import asdict, dataclass, field
from typing import Any

from berth.components.core.words import counted
from berth.stacks.load.stack import EngineerBerth, EngineerStack, Environment, located
from berth.stacks.policies.policy import Waiver

OWN_STACKS_FROM = 100
"""Number of engineers in one environment from which on stacks of their own are better. Adding one
engineer to a list of 100 took 17 s (two cores, Pulumi's own plugin), where a stack of their own
takes 3 s of CPU at any number; `make bench` measures both in its parts `pulumi` and `stacks`."""


@dataclass(frozen=True)
class CheckedStack:
    """Result of the check of one stack, with a line for each problem.

    An engineer's stack without its environment was not held to policies.
    """

    stack: str
    kind: str | None
    lines: list[str] = field(default_factory=list)
    loaded: Environment | EngineerBerth | EngineerStack | None = None

    @property
    def judged(self) -> Environment | EngineerBerth | None:
        """The stack where it was held to policies."""
        return None if isinstance(self.loaded, EngineerStack) else self.loaded

    @property
    def warnings(self) -> list[str]:
        """Settings that work, but probably not as intended, one line each."""
        if self.judged is None:
            return []
        return [located(warning, self.judged.file) for warning in self.judged.warnings]

    @property
    def policies(self) -> list[str] | None:
        """Names of the policies that the stack keeps; None where they were not checked."""
        return self.judged.judgment.held if self.judged else None

    @property
    def waivers(self) -> list[Waiver]:
        """Policies that the stack does not keep, with the reasons."""
        return self.judged.judgment.waivers if self.judged else []

    @property
    def notes(self) -> list[str]:
        """Advice about settings that work as intended."""
        if not isinstance(self.loaded, Environment):
            return []
        notes = list(self.loaded.judgment.notes)
        engineers = len(self.loaded.resolved.berths)
        if engineers < OWN_STACKS_FROM:
            return notes
        text = (
            f"{engineers} engineers are in one environment, and every update looks at all of them;"
            f" from {OWN_STACKS_FROM} on, stacks of their own are better, whose updates cost the"
            f" same at any number (berth create NAME -e {self.stack}; berth up -s {self.stack}"
            " --all)"
        )
        return [*notes, text]

    @property
    def summary(self) -> str:
        """Summary of the check: `environment, 4 policies kept, 1 waived`."""
        if self.policies is None:
            return f"{self.kind}, policies not checked: its environment could not be read"
        waived = f", {len(self.waivers)} waived" if self.waivers else ""
        return f"{self.kind}, {counted(len(self.policies), 'policy')} kept{waived}"

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs, with camelCase keys."""
        return {
            "stack": self.stack,
            "kind": self.kind,
            "problems": self.lines,
            "warnings": self.warnings,
            "notes": self.notes,
            "policies": self.policies,
            "waived": [asdict(waiver) for waiver in self.waivers],
        }
