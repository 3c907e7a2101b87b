"""Rules of an environment's access, isolation and homes, by its settings as they are written."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from berth.components.core.bounds import Bounds
from berth.components.core.owner import OwnerKind, namespace_of
from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.core.settings import written_keys
from berth.components.core.words import names_in_words
from berth.components.gke import SHARE_CLASSES, PoolSettings, ranges_of
from berth.components.isolation import Access
from berth.components.ray import BerthShape, Home, RayShape
from berth.stacks.settings.environment import KEYS, EnvironmentSettings

_PARTS = {
    "networkPolicies": ("reachable", "reachableNamespaces"),
    "quotas": ("storage", "ephemeralStorage"),
}
"""Settings of each part of the isolation that may be off."""

ENVIRONMENT = Rules[EnvironmentSettings](EnvironmentSettings)
"""Rules of an environment as it is written."""


@ENVIRONMENT.warning(
    "defaults.access.groups",
    "engineers.*.access.groups",
    "clusters.*.access.groups",
    "jobs.*.access.groups",
    "services.*.access.groups",
)
def groups_that_the_cluster_does_not_know(settings: EnvironmentSettings) -> Iterator[Breach]:
    """A GKE cluster knows Google groups by its security group only.

    Source: "Configure Google Groups for RBAC"
    (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/google-groups-rbac).
    """
    if settings.cluster.existing or settings.cluster.security_group:
        return
    written: dict[SettingPath, Access] = {("defaults",): settings.defaults.access}
    for kind, name, shape in settings.owners():
        written[KEYS[kind], name] = shape.access
    for place, access in written.items():
        if access.groups:
            domain = access.groups[0].partition("@")[2] or "YOUR-DOMAIN"
            yield Breach(
                "gives nobody access: the cluster knows no Google groups; write `cluster:"
                f" {{securityGroup: gke-security-groups@{domain}}}`",
                at=(*place, "access", "groups"),
            )


@ENVIRONMENT.warning("isolation.reachable.*")
def reachable_ranges_of_the_cluster(settings: EnvironmentSettings) -> Iterator[Breach]:
    """Dataplane V2 does not match nodes, pods and Services by ranges of addresses."""
    if settings.cluster.existing or settings.network.existing or not settings.network.can_be_cut:
        return
    ranges = ranges_of(settings.network)
    of_cluster = {"nodes": ranges.nodes, "pods": ranges.pods, "Services": ranges.services}
    for position, cidr in enumerate(settings.isolation.reachable):
        network = IPv4Network(cidr, strict=False)
        inside = [
            name for name, range_ in of_cluster.items() if network.overlaps(IPv4Network(range_))
        ]
        if inside:
            yield Breach(
                f"{cidr} holds the cluster's {names_in_words(inside, 'and')}, and Dataplane V2"
                " matches no range against those: berths reach none of them by it; name the"
                " namespaces that they may reach: `reachableNamespaces: [NAME]`",
                at=("isolation", "reachable", position),
            )


@ENVIRONMENT.problem("isolation.reachableNamespaces.*")
def berths_that_berths_would_reach(settings: EnvironmentSettings) -> Iterator[Breach]:
    """No berth reaches another one: the other's own policy keeps it out."""
    for position, name in enumerate(settings.isolation.reachable_namespaces):
        if name.startswith(namespace_of("")):
            yield Breach(
                f"{name!r} is a berth's namespace, and no berth reaches another: it would have no"
                " effect; take it out, and write `clients` of a service for what may call it",
                at=("isolation", "reachableNamespaces", position),
            )


@ENVIRONMENT.warning(*(f"isolation.{key}" for keys in _PARTS.values() for key in keys))
def settings_of_a_part_that_is_off(settings: EnvironmentSettings) -> Iterator[Breach]:
    """A part of isolation that is off has no limits and no exceptions."""
    written = set(written_keys(settings.isolation))
    on = {
        "networkPolicies": settings.isolation.network_policies,
        "quotas": settings.isolation.quotas,
    }
    for part, keys in _PARTS.items():
        for key in keys:
            if key in written and not on[part]:
                yield Breach(
                    f"has no effect with `{part}: false`; take one of them out",
                    at=("isolation", key),
                )


@ENVIRONMENT.warning("engineers.*.home", "clusters.*.home")
def homes_in_one_of_several_zones(settings: EnvironmentSettings) -> Iterator[Breach]:
    """A disk is in one zone, where the pool of the berth's head may have no node later."""
    for kind, name, shape in settings.owners():
        home = _home_of(kind, shape, settings)
        pool = _head_pool_of(shape, settings)
        if home is None or pool is None or home.storage_class in SHARE_CLASSES:
            continue
        zones = settings.zones_of(pool)
        if len(zones) > 1 and isinstance(pool.nodes, Bounds):
            yield Breach(
                "is a disk in the zone of the node that its head starts on first, and the pool may"
                " have no node there later, so that the head waits; give heads a pool with one of"
                f" {', '.join(zones)} under `zones`, or the home a StorageClass of Filestore",
                at=(KEYS[kind], name, "home"),
            )


def _home_of(kind: OwnerKind, shape: RayShape, settings: EnvironmentSettings) -> Home | None:
    own = shape.home if isinstance(shape, BerthShape) else None
    return own or (settings.defaults.home if kind == "engineer" else None)


def _head_pool_of(shape: RayShape, settings: EnvironmentSettings) -> PoolSettings | None:
    """Return the pool of a RayCluster's head, which by default is the only one without GPUs."""
    named = shape.head.pool or settings.defaults.head.pool
    if named:
        return settings.pools.get(named)
    without_gpus = [pool for pool in settings.pools.values() if not pool.machine.gpus]
    return without_gpus[0] if len(without_gpus) == 1 else None
