"""Rules across the settings of a GKE cluster, its networks and its node pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from berth.components.core.problems import Problem
from berth.components.gke.rules import capacity, cluster, location, network, nodes, placement
from berth.components.gke.settings import GkeSettings

Rule = Callable[[GkeSettings], Iterable[Problem]]

RULES: tuple[Rule, ...] = (
    location.problems,
    cluster.problems,
    network.problems,
    capacity.problems,
    placement.problems,
    nodes.problems,
)
"""Rules of what GKE and Google Cloud would refuse."""

WARNINGS: tuple[Rule, ...] = (cluster.warnings, capacity.warnings)
"""Rules of settings that work, but likely not as intended."""
