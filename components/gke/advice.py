"""Advice about errors of Google Cloud: what an error means, and what fixes it."""

import re
from dataclasses import dataclass

from berth.components.core import fast_yaml
from berth.components.gke.node_pool_arguments import NodePlace
from berth.components.gke.pool_settings import PoolSettings

_HAS_CAPACITY = re.compile(r"Consider trying your request in the ([\w, -]+?) zone\(s\)")


@dataclass(frozen=True)
class Pooled:
    """Node pool that an error is about."""

    name: str
    settings: PoolSettings
    place: NodePlace
    written: str = ""
    """File and line of the settings that describe the pool, where known."""


def advice(error: str, project: str, pool: Pooled | None = None) -> list[str]:
    """Return a line for each thing that is wrong; none where the error is not known."""
    values = _values(error, project, pool)
    for row in fast_yaml.beside(__file__):
        capacity = pool.settings.capacity.kind if pool else ""
        if row.get("pool", pool is not None) != (pool is not None) or row.get("capacity", capacity) != capacity:
            continue
        if found := list(re.finditer(row["error"], error)):
            return list(dict.fromkeys(row["advice"].format_map(values | match.groupdict()) for match in found))
    return []


def _values(error: str, project: str, pool: Pooled | None) -> dict[str, str]:
    """Return the values for texts of advice; those about the pool are for errors of pools."""
    if pool is None:
        return {"project": project, "fewer": "", "smaller": ""}
    settings, capacity, place, key = pool.settings, pool.settings.capacity, pool.place, f"pools.{pool.name}"
    owner, zones = capacity.project or project, place.zones or ("ZONE",)
    describe = f"gcloud compute reservations describe {capacity.reservation} --project {owner} --zone"
    takes_quota = capacity.kind == "on-demand" and settings.machine.gpus
    elsewhere = _HAS_CAPACITY.search(error)
    return {
        "project": project,
        "name": pool.name,
        "key": key,
        "machine_type": settings.machine_type,
        "machines": f"{settings.machine_type} in {' or '.join(place.zones)}" if place.zones else settings.machine_type,
        "cluster": place.cluster,
        "location": place.location,
        "zones": " or ".join(zones),
        "fewer": f", or set fewer {key}.nodes{'; machines of a reservation take no quota' if takes_quota else ''}",
        "smaller": f", or a smaller {key}.maxPodsPerNode",
        "reservation": f"reservation {capacity.reservation!r} of project {owner}",
        "block": f", or has no block {capacity.block!r}" if capacity.block else "",
        "look": "; ".join(f"{describe} {zone}" for zone in zones),
        "now": f"; there are some now in {elsewhere[1]}" if elsewhere else "",
    }
