"""Rules across the settings of a GKE cluster, its networks and its node pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from berth.components.core import fast_yaml
from berth.components.core.problems import Problem
from berth.components.core.table import broken
from berth.components.gke.rules import capacity, cluster, location, network, nodes, placement
from berth.components.gke.settings import GkeSettings

Rule = Callable[[GkeSettings], Iterable[Problem]]

_TABLES = fast_yaml.read(Path(__file__).with_name("contradictions.yaml"))


def contradictions(settings: GkeSettings) -> Iterable[Problem]:
    """Yield settings of the environment and its pools that contradict one another."""
    if settings.cluster.existing:
        return
    yield from broken(
        _TABLES["environment"], ("environment",), settings=settings, on_rdma=settings.pools_with_rdma("networks")
    )
    for name, pool in settings.pools.items():
        zones = settings.zones_of(pool)
        of_zones = {"zones": ", ".join(zones), "first_zone": next(iter(zones), ""), "several_zones": len(zones) > 1}
        yield from broken(_TABLES["pools"], ("environment", "pools", name), pool=pool, **of_zones)


RULES: tuple[Rule, ...] = (
    contradictions,
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
