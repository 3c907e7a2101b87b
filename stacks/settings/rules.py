"""What is impossible in an environment: said before any call, as GKE or Google Cloud would refuse it, with the reason.

Belongs here: pure functions from settings to problems, one module for each part of the settings.
Does not belong here: whether RayClusters fit on their pools (fit.py), a house's own policies, and what only Google Cloud
knows, such as quotas.
"""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Problem
from berth.components.gke.rules import capacity, cluster, location, network, nodes, placement
from berth.components.operators import rules as installed
from berth.components.ray import workload_rules as workloads
from berth.components.sharing import rules as gpus
from berth.components.sharing import scaling
from berth.stacks.settings.environment import EnvironmentSettings

_RULES = (
    location.problems,
    cluster.problems,
    network.problems,
    capacity.problems,
    placement.problems,
    nodes.problems,
    gpus.problems,
    scaling.problems,
    installed.problems,
    workloads.problems,
)
_WARNINGS = (cluster.warnings, capacity.warnings, gpus.warnings, scaling.warnings)


def problems_of(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Everything that is impossible in an environment, in the order of its parts."""
    for rule in _RULES:
        yield from rule(settings)


def warnings_of(settings: EnvironmentSettings) -> Iterable[Problem]:
    """What works in an environment, but likely not as it is meant."""
    for rule in _WARNINGS:
        yield from rule(settings)
