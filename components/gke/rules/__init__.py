"""Rules across the settings of a GKE cluster, its networks and its node pools."""

from collections.abc import Callable, Iterable

from berth.components.core.problems import Problem
from berth.components.gke.rules import cluster, network, pools
from berth.components.gke.settings import GkeSettings

Rule = Callable[[GkeSettings], Iterable[Problem]]

RULES: tuple[Rule, ...] = (cluster.problems, pools.problems, network.problems)
"""Rules of what GKE and Google Cloud would refuse."""

WARNINGS: tuple[Rule, ...] = (cluster.warnings, pools.warnings)
"""Rules of settings that work, but likely not as intended."""
