"""Rules of node pools that berth creates: machine types, placement, upgrades, kernel settings."""

from collections.abc import Iterator

from berth.components.core import fast_yaml
from berth.components.core.nearest import did_you_mean
from berth.components.core.rules import Breach, Rules
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.rules.pool import EnvironmentPool
from berth.components.gke.settings import GkeSettings
from berth.components.gke.versions import parse_gke_version

CREATED_POOLS = Rules[EnvironmentPool](PoolSettings)
"""Rules of one pool that berth creates."""

_NVLINK_DOMAIN_NODES = 18
_MOST_NODES_UPGRADED_AT_ONCE = 20
_SYSCTLS: frozenset[str] = frozenset(fast_yaml.load_beside(__file__, "sysctls.yaml"))
_BREAKS_TCPX = parse_gke_version("1.34.1-gke.1431000")


@CREATED_POOLS.problem("machineType")
def bare_metal_machine(pool: EnvironmentPool) -> str | None:
    """Bare metal needs networks and a daemon that berth does not create.

    Source: GoogleCloudPlatform/cluster-toolkit, examples/gke-a4x-max-bm and examples/gke-a4x.
    """
    if pool.settings.machine_type != "a4x-maxgpu-4g-metal":
        return None
    return (
        f"{pool.settings.machine_type} is bare metal, for which berth makes neither the networks"
        " (IDPF, vpc-roce-metal) nor asapd-lite; make the pool by Google's blueprint"
        " (GoogleCloudPlatform/cluster-toolkit, examples/gke-a4x-max-bm), and name its cluster as"
        " `cluster.existing`"
    )


@CREATED_POOLS.warning("machineType")
def unknown_machine_type(pool: EnvironmentPool) -> str | None:
    """Berth has facts only about the machine types of machines.yaml."""
    if pool.settings.machine.known:
        return None
    return (
        f"berth does not know {pool.settings.machine_type}: it cannot tell whether Google sells it"
        " there, which quota, disks and GKE version it needs, and, without `allocatable`, whether"
        " pods fit; GKE says so when the pool is made"
    )


@CREATED_POOLS.warning("machineType")
def tcpx_that_upgrades_break(pool: EnvironmentPool) -> str | None:
    """GPUDirect-TCPX works below a version, at which an exclusion stops GKE's upgrades.

    Source: "GKE release notes", 2025-10-17; cluster-toolkit, pull requests 4815 and 5673.
    """
    if pool.settings.machine_type != "a3-highgpu-8g" or _stays_below_tcpx(pool.environment):
        return None
    return (
        "GPUDirect-TCPX between nodes of a3-highgpu-8g does not work on GKE 1.34.1-gke.1431000 and"
        ' newer, to which GKE upgrades; write cluster: {version: "1.33", maintenance: {exclusions:'
        " {tcpx: {start: 2026-01-01T00:00:00Z}}}}"
    )


def _stays_below_tcpx(environment: GkeSettings) -> bool:
    version = environment.cluster.version
    if version is None or parse_gke_version(version).at_least(_BREAKS_TCPX):
        return False
    maintenance = environment.cluster.maintenance
    return maintenance is not None and bool(maintenance.exclusions)


@CREATED_POOLS.problem("rdma")
def rdma_networks_in_an_nvlink_domain(pool: EnvironmentPool) -> str | None:
    """Berth's RDMA networks are for machines with eight NICs.

    Source: GoogleCloudPlatform/cluster-toolkit, examples/gke-a4x.
    """
    if not pool.nvlink_domain or pool.settings.rdma != "networks":
        return None
    nics = pool.settings.machine.series.gpu_nics
    return (
        "the RDMA networks that berth makes have eight subnetworks, and"
        f" {pool.settings.machine_type} has {nics} RDMA NICs; write `rdma: managed`, as Google's"
        " own blueprint"
    )


@CREATED_POOLS.problem("nodes")
def nodes_beyond_an_nvlink_domain(pool: EnvironmentPool) -> str | None:
    """NVLink joins 18 nodes, and a pool is one domain.

    Source: GoogleCloudPlatform/cluster-toolkit, examples/gke-a4x.
    """
    most = pool.settings.nodes_at_most
    if not pool.nvlink_domain or most <= _NVLINK_DOMAIN_NODES:
        return None
    return (
        f"{most} nodes of {pool.settings.machine_type} are more than NVLink joins: a pool has one"
        f" domain ({pool.nvlink_domain}), {_NVLINK_DOMAIN_NODES} nodes; make several pools"
    )


@CREATED_POOLS.problem("compactPlacement")
def compact_placement_that_a_machine_type_lacks(pool: EnvironmentPool) -> str | None:
    """Not all machine types have compact placement, and fewer have it with flex-start.

    Source: "Define compact placement for GKE nodes", limitations
    (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/compact-placement).
    """
    if not pool.settings.compact_placement:
        return None
    machine_type = pool.settings.machine_type
    series = pool.settings.machine.series
    if not series.compact:
        return f"{machine_type} has no compact placement; take this line out"
    if pool.settings.capacity.kind == "flex-start" and not series.compact_flex_start:
        return f"does not go with flex-start on {machine_type}; take this line out"
    return None


@CREATED_POOLS.problem("compactPlacement", rests_on=["zones", "environment.zones"])
def compact_placement_across_zones(pool: EnvironmentPool) -> str | None:
    """Nodes can be close together in one zone only."""
    if not pool.settings.compact_placement or not pool.in_several_zones:
        return None
    return (
        "nodes can be close together in one zone only, but the pool is in"
        f" {pool.zones_in_words}; write zones: [{pool.zones[0]}]"
    )


@CREATED_POOLS.warning("compactPlacement")
def two_placements(pool: EnvironmentPool) -> str | None:
    """Nodes of a reservation with a placement of its own get no other.

    Source: github.com/AI-Hypercomputer/xpk/issues/1130.
    """
    capacity = pool.settings.capacity
    if not pool.settings.compact_placement or capacity.kind != "reservation":
        return None
    return (
        f"reservation {capacity.reservation} may have a placement of its own, beside which GKE"
        " refuses another; take this line out if `gcloud compute reservations describe` shows"
        " resourcePolicies"
    )


@CREATED_POOLS.problem("upgrade")
def upgrade_without_a_way(pool: EnvironmentPool) -> str | None:
    """GKE upgrades nodes beside the pool's size, or takes nodes away meanwhile."""
    if pool.settings.max_surge or pool.settings.max_unavailable:
        return None
    return (
        "maxSurge and maxUnavailable are both 0, so that no node could ever be upgraded; write"
        " maxSurge: 1, or maxUnavailable: 1 where there are no spare machines"
    )


@CREATED_POOLS.problem("upgrade")
def upgrade_of_too_many_nodes_at_once(pool: EnvironmentPool) -> str | None:
    """GKE limits the nodes that a surge upgrade takes at once.

    Source: "Node pool upgrade strategies", surge
    (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies).
    """
    surge = pool.settings.max_surge
    unavailable = pool.settings.max_unavailable
    if surge + unavailable <= _MOST_NODES_UPGRADED_AT_ONCE:
        return None
    return (
        f"maxSurge {surge} and maxUnavailable {unavailable} are {surge + unavailable} nodes at"
        f" once; GKE upgrades {_MOST_NODES_UPGRADED_AT_ONCE} at most"
    )


@CREATED_POOLS.problem("sysctls.*")
def kernel_settings_that_gke_does_not_set(pool: EnvironmentPool) -> Iterator[Breach]:
    """GKE's API takes certain kernel settings (sysctls.yaml), each with a value."""
    for key, value in pool.settings.sysctls.items():
        place = ("sysctls", key)
        if key not in _SYSCTLS:
            yield Breach(
                f"GKE does not set {key} on nodes, which a DaemonSet can"
                f"{did_you_mean(key, _SYSCTLS)}",
                at=place,
            )
        elif not value.strip():
            yield Breach("has no value; write one in quotes, or take the line out", at=place)
