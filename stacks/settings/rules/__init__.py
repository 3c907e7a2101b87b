"""Rules across a stack's settings: an environment as a whole, and a berth on its environment."""

from collections.abc import Callable, Iterable

from berth.components import operators, sharing
from berth.components.core.problems import Problem
from berth.components.gke import rules as gke
from berth.components.ray import shape_problems, workload_problems
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.rules.environment import ENVIRONMENT
from berth.stacks.settings.rules.names import OWNERS, reserved_names

_Rule = Callable[[EnvironmentSettings], Iterable[Problem]]

_OF_SLICES: tuple[_Rule, ...] = (*gke.RULES, *sharing.RULES, *operators.RULES)
_WARNINGS_OF_SLICES: tuple[_Rule, ...] = (*gke.WARNINGS, *sharing.WARNINGS, *operators.WARNINGS)

_PATH = ("environment",)


def environment_problems(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Yield what is wrong with an environment, before its RayClusters are complete."""
    for rule in _OF_SLICES:
        yield from rule(settings)
    shared = {*settings.engineers, *settings.clusters}
    yield from workload_problems(settings.jobs, settings.services, shared)
    yield from shape_problems(settings.defaults, (*_PATH, "defaults"))
    yield from ENVIRONMENT.problems(settings, _PATH)
    yield from OWNERS.problems(settings, _PATH)
    yield from reserved_names(settings)


def environment_warnings(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Yield settings of an environment that work, but likely not as intended."""
    for rule in _WARNINGS_OF_SLICES:
        yield from rule(settings)
    yield from ENVIRONMENT.warnings(settings, _PATH)
