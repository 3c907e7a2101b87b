"""Rules of VPC networks: address ranges that overlap or are too small, and existing networks."""

import ipaddress
import itertools
from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.core.words import are, counted
from berth.components.gke.ranges import WIDEST_SERVICES, ranges_of
from berth.components.gke.settings import GkeSettings
from berth.components.hardware.machines import RDMA_NICS

_NETWORK: Path = ("environment", "network")
_GIVEN = {
    "nodeRange": "node_range",
    "podRange": "pod_range",
    "serviceRange": "service_range",
    "gvnicRange": "gvnic_range",
    "rdmaRange": "rdma_range",
}
_WIDEST, _NARROWEST = 8, 20

# Google Cloud keeps 4 addresses of every subnetwork, and the smallest is a /29 ("Subnets",
# https://docs.cloud.google.com/vpc/docs/subnets).
_RESERVED = 4
_SMALLEST_SUBNETWORK = 29
_SMALLEST_SERVICES = 28

# A node gets at least twice as many addresses as it can have pods, as one block ("Configure maximum
# Pods per node", https://docs.cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr).
_DEFAULT_PODS = 110


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Return what networks cannot have."""
    if settings.cluster.existing:
        return
    if settings.network.existing:
        yield from _existing(settings)
        return
    prefix = ipaddress.IPv4Network(settings.network.cidr).prefixlen
    if not _WIDEST <= prefix <= _NARROWEST:
        facts = {"network": settings.network, "prefix": prefix, "widest": _WIDEST, "narrowest": _NARROWEST}
        yield from broken(beside(__file__)["cidr"], _NETWORK, **facts)
        return
    too_small = list(_too_small(settings))
    yield from too_small
    yield from _overlaps(settings)
    if not too_small:
        yield from _too_small_for_the_pools(settings)


def _existing(settings: GkeSettings) -> Iterable[Problem]:
    existing = settings.network.existing
    if existing and existing.rdma and (named := len(set(existing.rdma.subnetworks))) != RDMA_NICS:
        facts = {"named": f"{counted(named, 'subnetwork')} {are(named)}", "nics": RDMA_NICS}
        yield from broken(beside(__file__)["rdma_subnetworks"], _NETWORK, **facts)


def used_ranges(settings: GkeSettings) -> dict[str, str]:
    """Return the ranges that the environment uses, by key."""
    ranges = ranges_of(settings.network)
    used = {"nodeRange": ranges.nodes, "podRange": ranges.pods, "serviceRange": ranges.services}
    if settings.pools_with_rdma("networks"):
        used |= {"gvnicRange": ranges.gvnic, "rdmaRange": ranges.rdma}
    return used


def addresses_per_node(max_pods: int | None) -> int:
    """Return the pod addresses of a node with at most so many pods: 256 for the default of 110."""
    return 1 << (2 * (max_pods or _DEFAULT_PODS) - 1).bit_length()


def _overlaps(settings: GkeSettings) -> Iterable[Problem]:
    used = used_ranges(settings)
    given = {key for key in used if getattr(settings.network, _GIVEN[key])}
    for pair in itertools.combinations(used, 2):
        # It is said of the one that was written by hand.
        one, other = pair if pair[1] in given or pair[0] not in given else reversed(pair)
        if ipaddress.IPv4Network(used[one]).overlaps(ipaddress.IPv4Network(used[other])):
            yield Problem(
                (*_NETWORK, other),
                f"{used[other]} overlaps {one} {used[one]}; give them apart from each other, or take {other} out",
                rests_on=_all_ranges(used),
            )


def _too_small(settings: GkeSettings) -> Iterable[Problem]:
    """Refuse ranges whose size Google Cloud refuses."""
    for key, text in used_ranges(settings).items():
        prefix = ipaddress.IPv4Network(text).prefixlen
        parts = RDMA_NICS if key == "rdmaRange" else 1
        facts = {"text": text, "prefix": prefix, "of_services": WIDEST_SERVICES <= prefix <= _SMALLEST_SERVICES}
        facts |= {"widest": WIDEST_SERVICES, "smallest": _SMALLEST_SERVICES, "subnetwork": _SMALLEST_SUBNETWORK}
        facts |= {"most": _SMALLEST_SUBNETWORK - (parts - 1).bit_length()}
        facts |= {"parts": f", cut into {parts}," if parts > 1 else ""}
        yield from broken(beside(__file__)["too_small"], (*_NETWORK, key), range=key, **facts)


def _too_small_for_the_pools(settings: GkeSettings) -> Iterable[Problem]:
    """Refuse ranges without room for all nodes that the pools can have."""
    used = used_ranges(settings)
    most = {name: pool.nodes_at_most + pool.max_surge for name, pool in settings.pools.items()}
    nodes = sum(most.values())
    rdma_nodes = sum(most[name] for name in settings.pools_with_rdma("networks"))
    pods = sum(most[name] * addresses_per_node(pool.max_pods_per_node) for name, pool in settings.pools.items())
    needs = {
        "nodeRange": (nodes, 1, nodes, _RESERVED),
        "podRange": (pods, 1, nodes, 0),
        "gvnicRange": (rdma_nodes, 1, rdma_nodes, _RESERVED),
        "rdmaRange": (rdma_nodes, RDMA_NICS, rdma_nodes, _RESERVED),
    }
    for key, (addresses, parts, pool_nodes, reserved) in needs.items():
        if key not in used:
            continue
        has = ipaddress.IPv4Network(used[key]).num_addresses // parts - reserved
        if addresses <= has:
            continue
        prefix = 32 - ((addresses + reserved) * parts - 1).bit_length()
        where = f" in each of its {parts} subnetworks" if parts > 1 else ""
        or_pods = " or maxPodsPerNode" if key == "podRange" else ""
        given = getattr(settings.network, _GIVEN[key])
        enough = f"make it at least a /{prefix}" if given else f"widen cidr, or set {key} to at least a /{prefix}"
        yield Problem(
            (*_NETWORK, key if given else "cidr"),
            f"{key} {used[key]} has room for {has:,} addresses{where}, but the pools can have {pool_nodes:,} nodes,"
            f" those of an upgrade included, which need {addresses:,}; {enough}, or lower the pools' nodes{or_pods}",
            rests_on=_all_ranges(used),
        )


def _all_ranges(used: Iterable[str]) -> tuple[Path, ...]:
    return tuple((*_NETWORK, key) for key in ("cidr", *used))
