"""Rules of the zones of an environment and its pools."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.core.types import region_of
from berth.components.gke.settings import GkeSettings

_TOP: Path = ("environment",)
_EXISTING: Path = (*_TOP, "cluster", "existing")
_PLACES = ((*_TOP, "zone"), (*_TOP, "region"), (*_TOP, "zones"), _EXISTING)


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Refuse zones that nobody names, that are elsewhere, or that are named twice."""
    if settings.cluster.existing:
        return
    lists: list[tuple[Path, list[str]]] = [((*_TOP, "zones"), settings.zones if settings.region else [])]
    lists += [((*_TOP, "pools", name, "zones"), pool.zones or []) for name, pool in settings.pools.items()]
    for path, zones in lists:
        elsewhere = [zone for zone in dict.fromkeys(zones) if region_of(zone) != settings.in_region]
        if elsewhere and settings.in_region:
            yield Problem(
                path,
                f"{', '.join(elsewhere)} {'is' if len(elsewhere) == 1 else 'are'} not in region {settings.in_region},"
                " where the cluster is; GKE has all nodes of a cluster in one region",
                rests_on=_PLACES,
            )
        twice = sorted({zone for zone in zones if zones.count(zone) > 1})
        if twice:
            yield Problem(path, f"{', '.join(twice)} is named twice; name each zone once")
