"""Rules of where a new cluster and its nodes are: zone or region, and the zones of pools."""

from collections.abc import Iterator

from berth.components.core.bounds import Bounds
from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.core.types import region_of
from berth.components.core.words import is_or_are
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.rules.pool import EnvironmentPool
from berth.components.gke.settings import GkeSettings

CREATED_ZONES = Rules[GkeSettings](GkeSettings)
"""Rules of where a cluster that berth creates, and its nodes, are."""

CREATED_POOL_ZONES = Rules[EnvironmentPool](PoolSettings)
"""Rules of the zones of a pool that berth creates."""

_PLACE = ("environment.zone", "environment.region", "environment.zones")
_PLACE_OF_A_NEW_CLUSTER = (*_PLACE, "environment.cluster.existing")


@CREATED_ZONES.problem("zone", rests_on=_PLACE_OF_A_NEW_CLUSTER)
def missing_place(environment: GkeSettings) -> str | None:
    """A cluster is in a zone or in a region."""
    if not environment.zone and not environment.region:
        return (
            "is required: the cluster's zone, for example us-central1-b; or set `region` and"
            " `zones` for a regional cluster"
        )
    return None


@CREATED_ZONES.problem("region")
def region_beside_a_zone(environment: GkeSettings) -> str | None:
    """A cluster is zonal or regional."""
    if environment.zone and environment.region:
        return (
            f"zone {environment.zone} is given too, and a cluster has one of them: keep `zone` for"
            " a zonal cluster, or `region` for a regional one whose nodes are in `zones`"
        )
    return None


@CREATED_ZONES.problem("zones", rests_on=_PLACE_OF_A_NEW_CLUSTER)
def zones_of_a_zonal_cluster(environment: GkeSettings) -> str | None:
    """Only a regional cluster has a list of zones."""
    if environment.zone and environment.zones and not environment.region:
        return (
            f"belongs to `region`: a cluster in zone {environment.zone} has its nodes there; take"
            " `zones` out, or give a pool its own `zones`"
        )
    return None


@CREATED_ZONES.problem("zones")
def region_without_zones(environment: GkeSettings) -> str | None:
    """GKE chooses three zones of a region by itself, and GPUs are not in every zone."""
    if not environment.region or environment.zone or environment.zones:
        return None
    without = sorted(name for name, pool in environment.pools.items() if not pool.zones)
    if not without:
        return None
    return (
        f"is required with `region`, for pools that name no zones ({', '.join(without)}): GKE"
        " would choose three, and GPUs are not in every zone; write for example zones:"
        f" [{environment.region}-a, {environment.region}-b]"
    )


@CREATED_ZONES.problem("zones", "pools.*.zones", rests_on=_PLACE_OF_A_NEW_CLUSTER)
def zones_outside_the_region(environment: GkeSettings) -> Iterator[Breach]:
    """All nodes of a cluster are in its region."""
    region = environment.in_region
    if not region:
        return
    for place, zones in _lists_of_zones(environment):
        elsewhere = [zone for zone in dict.fromkeys(zones) if region_of(zone) != region]
        if elsewhere:
            names = ", ".join(elsewhere)
            yield Breach(
                f"{names} {is_or_are(len(elsewhere))} not in region {region}, where"
                " the cluster is; GKE has all nodes of a cluster in one region",
                at=place,
            )


@CREATED_ZONES.problem("zones", "pools.*.zones")
def zones_named_twice(environment: GkeSettings) -> Iterator[Breach]:
    """A list names a zone once."""
    for place, zones in _lists_of_zones(environment):
        twice = sorted({zone for zone in zones if zones.count(zone) > 1})
        if twice:
            yield Breach(f"{', '.join(twice)} is named twice; name each zone once", at=place)


def _lists_of_zones(environment: GkeSettings) -> Iterator[tuple[SettingPath, list[str]]]:
    """Yield the lists of zones in the settings, with their places."""
    for name, pool in environment.pools.items():
        yield ("pools", name, "zones"), pool.zones or []
    if environment.region:
        yield ("zones",), environment.zones


@CREATED_POOL_ZONES.problem("zones")
def empty_zones(pool: EnvironmentPool) -> str | None:
    """A pool's own list of zones has one zone at least."""
    if pool.settings.zones == []:
        return "is empty; take it out for the environment's, or name a zone"
    return None


@CREATED_POOL_ZONES.problem("zones", rests_on=["environment.zones"])
def rdma_across_zones(pool: EnvironmentPool) -> str | None:
    """An RDMA network is in one zone."""
    has_rdma = pool.settings.rdma in ("managed", "networks")
    if not has_rdma or not pool.in_several_zones or pool.nvlink_domain:
        return None
    return (
        "RDMA networks don't reach from one zone to another, but the pool is in"
        f" {pool.zones_in_words}; give each zone a pool of its own: zones: [{pool.zones[0]}]"
    )


@CREATED_POOL_ZONES.problem("zones", rests_on=["environment.zones"])
def nvlink_across_zones(pool: EnvironmentPool) -> str | None:
    """A domain of NVLink is in one zone."""
    if not pool.nvlink_domain or not pool.in_several_zones:
        return None
    return (
        f"a domain of NVLink is in one zone, but the pool is in {pool.zones_in_words}; write"
        f" zones: [{pool.zones[0]}]"
    )


@CREATED_POOL_ZONES.problem("zones", rests_on=["environment.zone", "environment.zones"])
def pool_outside_the_zone_of_existing_rdma(pool: EnvironmentPool) -> str | None:
    """An existing RDMA network is in one zone; of those that berth creates, each zone gets one."""
    environment = pool.environment
    on_networks = environment.pools_with_rdma("networks")
    if not environment.network.existing or pool.name not in on_networks:
        return None
    first_zones = environment.zones_of(environment.pools[on_networks[0]])
    in_one_zone_each = len(first_zones) == len(pool.zones) == 1
    if not in_one_zone_each or pool.zones == first_zones:
        return None
    return (
        f"the existing RDMA network is bound to one zone, which for pool {on_networks[0]!r} is"
        f" {first_zones[0]}, but this pool is in {pool.zones[0]}; put both in one zone, or let"
        " berth make the networks (take `network.existing` out)"
    )


@CREATED_POOL_ZONES.problem("nodes", rests_on=["zones", "environment.zones"])
def nodes_that_zones_cannot_share(pool: EnvironmentPool) -> str | None:
    """GKE has the same number of nodes in each zone of a pool."""
    nodes = pool.settings.nodes
    count = len(pool.zones)
    if isinstance(nodes, Bounds) or not pool.in_several_zones or nodes % count == 0:
        return None
    lower = nodes // count * count
    fitting = f"{lower} or {lower + count}" if lower else str(count)
    return (
        f"{nodes} cannot be the same number in each of {count} zones ({pool.zones_in_words}),"
        f" as GKE has it; write {fitting}, bounds such as {{min: {nodes}, max: {nodes}}}, or one"
        f" zone: zones: [{pool.zones[0]}]"
    )
