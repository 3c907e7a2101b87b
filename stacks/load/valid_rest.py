"""Valid rest of settings that have invalid parts, so that a check reports all problems at once."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.validation import problems_of_validation
from berth.stacks.settings.environment import KEYS, EnvironmentSettings

STAND_IN_NAME = "berth-stand-in"
"""Name in place of one that is missing or wrong, so that all else can be checked."""

_STAND_IN = {STAND_IN_NAME: {"machineType": "n2-standard-16", "nodes": 1}}
"""Pools of an environment without a valid one, so that its other settings can be checked."""

_ROUNDS = 3
"""Most times that parts are taken out: an entry without its invalid part may be invalid too."""


@dataclass(frozen=True)
class ValidRest:
    """An environment without its invalid parts.

    Attributes:
        settings: the settings that are left.
        lost_pools: names of the pools that were taken out.
    """

    settings: EnvironmentSettings
    lost_pools: frozenset[str]


def valid_rest(value: Any, problems: Iterable[Problem]) -> ValidRest | None:
    """Return the valid rest of an environment; None without one.

    Args:
        value: the environment as its file has it, which may be anything.
        problems: what is wrong with it, at paths that begin with `environment`.
    """
    value = {} if value is None else value
    if not isinstance(value, dict):
        return None
    keys = {field.alias or name for name, field in EnvironmentSettings.model_fields.items()}
    rest = {key: part for key, part in value.items() if key in keys}
    wrong = [problem.path[1:] for problem in problems]
    for _ in range(_ROUNDS):
        rest = _with_pools(without_paths(rest, wrong))
        try:
            settings = EnvironmentSettings.model_validate(rest, by_alias=True, by_name=False)
        except ValidationError as error:
            # Without its broken part an entry may lack a required one: then the entry goes.
            wrong = [
                problem.path[:-1]
                for problem in problems_of_validation(error, EnvironmentSettings, ())
            ]
        else:
            pools = value.get("pools")
            written = frozenset(pools) if isinstance(pools, dict) else frozenset()
            return ValidRest(settings, written - frozenset(settings.pools))
    return None


def _with_pools(rest: dict[str, Any]) -> dict[str, Any]:
    """Return settings with a pool that stands in for missing ones, and then without owners.

    Place, network and operators do not depend on the pools; everything on a pool does.
    """
    if rest.get("pools"):
        return rest
    without_owners = {key: part for key, part in rest.items() if key not in KEYS.values()}
    return without_owners | {"pools": _STAND_IN}


def without_reported(problems: Iterable[Problem], of_rest: Iterable[Problem]) -> list[Problem]:
    """Return the problems of settings without their invalid parts, except those of the removal.

    A removed part is not reported as missing too; its absence means nothing, nor does a stand-in.
    """
    reported = {problem.path for problem in problems}
    return [
        problem
        for problem in of_rest
        if problem.path not in reported and not problem.rests_on_any(reported)
        if STAND_IN_NAME not in problem.path and STAND_IN_NAME not in problem.message
    ]


def without_paths(value: Any, paths: Iterable[SettingPath]) -> Any:
    """Return a copy of a value without what is at some paths."""
    rest = copy.deepcopy(value)
    for path in sorted(paths, key=len, reverse=True):
        _remove(rest, path)
    return rest


def _remove(value: Any, path: SettingPath) -> None:
    for part in path[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return
    if path and isinstance(value, dict):
        value.pop(path[-1], None)
    elif path and isinstance(value, list) and isinstance(path[-1], int) and path[-1] < len(value):
        value[path[-1]] = None
