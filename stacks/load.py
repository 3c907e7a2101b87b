"""From a stack's config to checked settings: the one way, for `pulumi up` and for `berth check`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path, Problem, from_validation
from berth.stacks import service_code
from berth.stacks.policies.settings import judge_engineer, judge_environment
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.names import name_problems
from berth.stacks.settings.resolve import EnvironmentContract, Resolved, resolve_engineer, resolve_environment
from berth.stacks.stack_file import NAMESPACE, StackFile

KINDS: dict[str, type[EnvironmentSettings | EngineerSettings]] = {
    "environment": EnvironmentSettings,
    "engineer": EngineerSettings,
}
"""The kinds of stack, by the key under which their settings stand."""


class SettingsError(BadInputError):
    """Settings are wrong. The text has one line for each problem, with its file and line where there is a file."""

    def __init__(self, stack: str, problems: list[Problem], file: StackFile | None) -> None:
        line_of = {problem: (file.line(problem.path) if file else None) or 0 for problem in problems}
        self.problems = sorted(problems, key=lambda problem: line_of[problem])
        self.lines = [located(problem, file) for problem in self.problems]
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n".join([f"stack {stack}: {count} in its settings; nothing is changed", *self.lines]))


def located(problem: Problem, file: StackFile | None) -> str:
    """A problem as a line: file and line where there is a file, where in the settings, what."""
    place = ""
    if file is not None:
        line = file.line(problem.path)
        place = f"{file.shown_path}:{line}: " if line else f"{file.shown_path}: "
    return f"{place}{problem.where}: {problem.message}" if problem.where else f"{place}{problem.message}"


def load(stack: str, values: Mapping[str, Any], file: StackFile | None) -> EnvironmentSettings | EngineerSettings:
    """Check what can be checked without any other stack.

    Args:
        stack: the stack's name.
        values: settings by key in the `berth:` namespace.
        file: where they were written, for lines in errors.

    Raises:
        SettingsError: with every problem at once.
    """
    kinds = [kind for kind in KINDS if kind in values]
    problems = [
        Problem((key,), f"unknown key '{NAMESPACE}:{key}'{did_you_mean(key, KINDS)}", of_key=True)
        for key in values
        if key not in KINDS
    ]
    if len(kinds) != 1:
        both = "both" if kinds else "neither"
        rule = (
            f"sets {both} {NAMESPACE}:environment and {NAMESPACE}:engineer"
            if kinds
            else (f"sets neither {NAMESPACE}:environment nor {NAMESPACE}:engineer")
        )
        problems.append(Problem((), f"the stack {rule}; it must set one of them"))
        raise SettingsError(stack, problems, file)
    kind = kinds[0]
    value = values[kind]
    try:
        settings = KINDS[kind].model_validate({} if value is None else value, by_alias=True, by_name=False)
    except ValidationError as error:
        problems += from_validation(error, KINDS[kind], (kind,))
        if kind == "environment":
            problems += _problems_across_the_rest(stack, value, problems)
        raise SettingsError(stack, problems, file) from None
    if isinstance(settings, EnvironmentSettings):
        problems += _problems_across(stack, settings)
    else:
        problems += name_problems(stack, settings)
    if problems:
        raise SettingsError(stack, problems, file)
    return settings


def _problems_across(
    stack: str, settings: EnvironmentSettings, unknown_pools: frozenset[str] = frozenset()
) -> list[Problem]:
    """What is wrong across an environment's settings, and what is against a policy."""
    resolved = resolve_environment(settings, unknown_pools=unknown_pools)
    return [
        *name_problems(stack, settings),
        *resolved.problems,
        *service_code.problems(settings),
        *judge_environment(stack, settings, resolved).problems,
    ]


def _problems_across_the_rest(stack: str, value: Any, found: list[Problem]) -> list[Problem]:
    """What is wrong across an environment's settings that are valid by themselves, so that all problems come at once."""
    if not isinstance(value, dict) or not isinstance(value.get("pools"), dict):
        return []
    known = {field.alias or name for name, field in EnvironmentSettings.model_fields.items()}
    rest = copy.deepcopy({key: part for key, part in value.items() if key in known})
    broken = [problem.path[1:] for problem in found]
    for _ in range(_ROUNDS):
        for path in sorted(broken, key=len, reverse=True):
            _remove(rest, path)
        try:
            settings = EnvironmentSettings.model_validate(rest, by_alias=True, by_name=False)
        except ValidationError as error:
            # Without its broken part an entry may lack what it needs: then the entry goes.
            broken = [problem.path[:-1] for problem in from_validation(error, EnvironmentSettings, ())]
            continue
        lost = frozenset(value["pools"]) - frozenset(settings.pools)
        # What was taken out for being wrong is not missed too, and nothing is concluded from its absence.
        said = {problem.path for problem in found}
        across = _problems_across(stack, settings, lost)
        return [each for each in across if each.path not in said and not each.rests_on_any(said)]
    return []


_ROUNDS = 3


def _remove(value: Any, path: Path) -> None:
    """Take the value at `path` out, where it is there."""
    for part in path[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return
    if path and isinstance(value, dict):
        value.pop(path[-1], None)
    elif path and isinstance(value, list) and isinstance(path[-1], int) and path[-1] < len(value):
        value[path[-1]] = None


def berth_on(stack: str, settings: EngineerSettings, contract: EnvironmentContract, file: StackFile | None) -> Resolved:
    """An engineer's RayCluster on its environment.

    Raises:
        SettingsError: it doesn't fit there, or is against a policy that holds there.
    """
    resolved = resolve_engineer(settings, stack, contract)
    if problems := [*resolved.problems, *judge_engineer(contract, resolved).problems]:
        raise SettingsError(stack, problems, file)
    return resolved
