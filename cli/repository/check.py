"""`berth check`: settings without the engine; `berth schema`: their JSON Schema."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem
from berth.components.core.words import counted
from berth.stacks.files import stack_file
from berth.stacks.load.stack import (
    EngineerBerth,
    EngineerStack,
    Environment,
    SettingsError,
    load_stack,
    load_text,
    located,
    rest_of,
)
from berth.stacks.load.valid_rest import without_reported
from berth.stacks.policies.policy import Waiver

OWN_STACKS_FROM = 100
"""Number of engineers in one environment from which on stacks of their own are better. Adding one
engineer to a list of 100 took 17 s (two cores, Pulumi's own plugin), where a stack of their own
takes 3 s of CPU at any number; `make bench` measures both in its parts `pulumi` and `stacks`."""


@dataclass(frozen=True)
class Checked:
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
        return (
            [located(warning, self.judged.file) for warning in self.judged.warnings]
            if self.judged
            else []
        )

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
        engineers = len(self.loaded.resolved.berths) if isinstance(self.loaded, Environment) else 0
        if engineers < OWN_STACKS_FROM:
            return []
        text = (
            f"{engineers} engineers are in one environment, and every update looks at all of them;"
            f" from {OWN_STACKS_FROM} on, stacks of their own are better, whose updates cost the"
            f" same at any number (berth create NAME -e {self.stack}; berth up -s {self.stack}"
            " --all)"
        )
        return [text]

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


StackLoader = Callable[[str], Environment | EngineerStack]


def check_stack(stack: str, text: str | None = None, load: StackLoader = load_stack) -> Checked:
    """Check one stack's settings: those of a text, or by default those in its file.

    An engineer's stack is checked against the environment's file where there is one here.
    """
    try:
        loaded = load(stack) if text is None else load_text(stack, text)
        judged = _berth(loaded, load) if isinstance(loaded, EngineerStack) else loaded
        return Checked(stack, loaded.kind, loaded=judged)
    except SettingsError as error:
        return Checked(stack, error.kind, _with_rest(error, load).lines)
    except BadInputError as error:
        return Checked(stack, None, [str(error)])


def check_all(stacks: Iterable[str]) -> list[Checked]:
    """Check several stacks, each loaded once."""
    load = cache(load_stack)
    return [check_stack(stack, load=load) for stack in stacks]


def _with_rest(error: SettingsError, load: StackLoader) -> SettingsError:
    """Return all problems of a stack, with those of its valid settings on its environment."""
    rest = rest_of(error)
    if rest is None:
        return error
    try:
        _berth(rest, load)
    except SettingsError as found:
        more = without_reported(error.problems, found.problems)
        return SettingsError(error.stack, [*error.problems, *more], error.file)
    return error


def _berth(loaded: EngineerStack, load: StackLoader) -> EngineerBerth | EngineerStack:
    """Return the berth on its environment; without a readable environment the stack itself."""
    environment = loaded.settings.environment
    own_part = loaded.settings.part == "cluster" and not stack_file.stack_path(environment).exists()
    if "/" in environment or own_part:
        return loaded  # of another project: only `pulumi preview` can ask its state, or the cluster
    found: Environment | EngineerStack | None = None
    try:
        found = load(environment)
    except BadInputError as error:
        if isinstance(error, SettingsError) and error.kind == "environment":
            return loaded  # the environment's own check reports its problems
    if isinstance(found, Environment):
        return loaded.on(found.contract())
    known = [
        stack for stack, settings in stack_file.all_settings().items() if "environment" in settings
    ]
    problem = Problem(
        ("engineer", "environment"),
        f"there is no environment {environment!r}{did_you_mean(environment, known)}",
    )
    raise SettingsError(loaded.stack, [problem], loaded.file)
