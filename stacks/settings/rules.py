"""Rules across an environment's settings as a whole: those of all slices, names and groups."""

from collections.abc import Callable, Iterable
from ipaddress import IPv4Network

from berth.components import operators, sharing
from berth.components.core.bounds import Bounds
from berth.components.core.owner import OwnerKind, namespace_of
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import beside, broken
from berth.components.gke import SHARE_CLASSES, ranges_of
from berth.components.gke import rules as gke
from berth.components.ray import JobShape
from berth.components.ray.layers import group_problems
from berth.components.ray.workload_rules import workload_problems
from berth.stacks.settings.environment import KEYS, EnvironmentSettings

CONTRADICTIONS = beside(__file__)
"""Contradictions of an environment, and of an engineer's own stack."""


def _names(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Yield names that are taken: the namespaces would be one."""
    kinds: dict[str, OwnerKind] = {}
    for kind, name, shape in settings.owners():
        path = ("environment", KEYS[kind], name)
        if name in kinds:
            both = " and ".join(
                f"{'an' if owner == 'engineer' else 'a'} {owner}" for owner in (kinds[name], kind)
            )
            message = (
                f"{name!r} is both {both}; both would be namespace {namespace_of(name)}: rename one"
            )
            yield Problem(path, message)
        else:
            kinds[name] = kind
            # A job on the RayCluster of another owner is in that one's namespace.
            if not (isinstance(shape, JobShape) and shape.cluster):
                yield from broken(CONTRADICTIONS["reserved"], path, name=name)


def _groups_of_nobody(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Yield `groups` under `access` that would give nobody access on a cluster of berth's own."""
    if settings.cluster.existing or settings.cluster.security_group:
        return
    written: dict[SettingPath, list[str]] = {("defaults",): settings.defaults.access.groups}
    written |= {(KEYS[kind], name): shape.access.groups for kind, name, shape in settings.owners()}
    for path, groups in written.items():
        if groups:
            domain = groups[0].partition("@")[2] or "YOUR-DOMAIN"
            yield from broken(CONTRADICTIONS["groups"], ("environment", *path), domain=domain)


def _ranges_of_the_cluster(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Yield `reachable` ranges that hold pods or Services, which Dataplane V2 does not match."""
    if settings.cluster.existing or settings.network.existing or not settings.isolation.reachable:
        return
    ranges = ranges_of(settings.network)
    inside = {"nodes": ranges.nodes, "pods": ranges.pods, "Services": ranges.services}
    for position, cidr in enumerate(settings.isolation.reachable):
        network = IPv4Network(cidr, strict=False)
        if found := [
            what for what, range_ in inside.items() if network.overlaps(IPv4Network(range_))
        ]:
            where = ("environment", "isolation", "reachable", position)
            yield from broken(CONTRADICTIONS["ranges"], where, cidr=cidr, found=found)


def _homes_of_a_zone(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Yield homes on disks of one zone whose head's pool may have no node there."""
    default = settings.defaults.head.pool
    only = [name for name, pool in settings.pools.items() if not pool.machine.gpus]
    for kind, name, shape in settings.owners():
        home = getattr(shape, "home", None) or (
            settings.defaults.home if kind == "engineer" else None
        )
        pool = settings.pools.get(shape.head.pool or default or (only[0] if len(only) == 1 else ""))
        if home is None or pool is None or home.storage_class in SHARE_CLASSES:
            continue
        zones = settings.zones_of(pool)
        if len(zones) > 1 and isinstance(pool.nodes, Bounds):
            yield from broken(
                CONTRADICTIONS["homes"], ("environment", KEYS[kind], name), zones=zones
            )


Rule = Callable[[EnvironmentSettings], Iterable[Problem]]

RULES: tuple[Rule, ...] = (
    *gke.RULES,
    *sharing.RULES,
    *operators.RULES,
    lambda settings: workload_problems(
        settings.jobs, settings.services, {*settings.engineers, *settings.clusters}
    ),
    lambda settings: group_problems(settings.defaults, ("environment", "defaults")),
    _names,
)
"""Rules of what cannot be."""

WARNINGS: tuple[Rule, ...] = (
    *gke.WARNINGS,
    *sharing.WARNINGS,
    *operators.WARNINGS,
    _groups_of_nobody,
    _ranges_of_the_cluster,
    _homes_of_a_zone,
)
"""Rules of settings that work, but likely not as intended."""
