"""Rules of VPC networks: address ranges that overlap or are too small, and existing networks."""

import ipaddress
import itertools
from collections.abc import Iterable

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import beside, broken
from berth.components.core.words import counted, is_or_are
from berth.components.gke.network_settings import WIDEST_SERVICES, ranges_of
from berth.components.gke.settings import GkeSettings
from berth.components.hardware.allocatable import DEFAULT_MAX_PODS
from berth.components.hardware.machines import RDMA_NICS

_TABLES = beside(__file__)
_NETWORK: SettingPath = ("environment", "network")
_WIDEST, _NARROWEST = 8, 20

# Google Cloud keeps 4 addresses of every subnetwork, and the smallest is a /29 ("Subnets",
# https://docs.cloud.google.com/vpc/docs/subnets).
_RESERVED = 4
_SMALLEST_SUBNETWORK = 29
_SMALLEST_SERVICES = 28


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Yield what networks cannot have."""
    network = settings.network
    if settings.cluster.existing:
        return
    if network.existing:
        rdma = network.existing.rdma
        if rdma and (named := len(set(rdma.subnetworks))) != RDMA_NICS:
            facts = {
                "named": f"{counted(named, 'subnetwork')} {is_or_are(named)}",
                "nics": RDMA_NICS,
            }
            yield from broken(_TABLES["rdma_subnetworks"], _NETWORK, **facts)
        return
    prefix = ipaddress.IPv4Network(network.cidr).prefixlen
    if not _WIDEST <= prefix <= _NARROWEST:
        yield from broken(
            _TABLES["cidr"],
            _NETWORK,
            network=network,
            prefix=prefix,
            widest=_WIDEST,
            narrowest=_NARROWEST,
        )
        return
    used = _used(settings)
    too_small = list(_too_small(used))
    yield from too_small
    yield from _overlaps(used, network.model_dump(by_alias=True, exclude_none=True))
    if not too_small:
        yield from _too_small_for_the_pools(settings, used)


def _used(settings: GkeSettings) -> dict[str, str]:
    ranges = ranges_of(settings.network)
    used = {"nodeRange": ranges.nodes, "podRange": ranges.pods, "serviceRange": ranges.services}
    if settings.pools_with_rdma("networks"):
        used |= {"gvnicRange": ranges.gvnic, "rdmaRange": ranges.rdma}
    return used


def _overlaps(used: dict[str, str], given: Iterable[str]) -> Iterable[Problem]:
    for pair in itertools.combinations(used, 2):
        # It is said of the one that was written by hand.
        one, other = pair if pair[1] in given or pair[0] not in given else reversed(pair)
        if ipaddress.IPv4Network(used[one]).overlaps(ipaddress.IPv4Network(used[other])):
            facts = {"one": f"{one} {used[one]}", "other": other, "range": used[other]}
            yield from broken(_TABLES["overlaps"], (*_NETWORK, other), **facts)


def _too_small(used: dict[str, str]) -> Iterable[Problem]:
    """Yield ranges whose size Google Cloud refuses."""
    for key, text in used.items():
        prefix = ipaddress.IPv4Network(text).prefixlen
        parts = RDMA_NICS if key == "rdmaRange" else 1
        facts = {
            "text": text,
            "prefix": prefix,
            "of_services": WIDEST_SERVICES <= prefix <= _SMALLEST_SERVICES,
        }
        facts |= {
            "widest": WIDEST_SERVICES,
            "smallest": _SMALLEST_SERVICES,
            "subnetwork": _SMALLEST_SUBNETWORK,
        }
        facts |= {"most": _SMALLEST_SUBNETWORK - (parts - 1).bit_length()}
        facts |= {"parts": f", cut into {parts}," if parts > 1 else ""}
        yield from broken(_TABLES["too_small"], (*_NETWORK, key), range=key, **facts)


def _too_small_for_the_pools(settings: GkeSettings, used: dict[str, str]) -> Iterable[Problem]:
    """Yield ranges without room for all nodes that the pools can have.

    A node gets at least twice as many addresses as it can have pods, as one block: 256 for 110
    ("Configure maximum Pods per node",
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr).
    """
    most = {name: pool.nodes_at_most + pool.max_surge for name, pool in settings.pools.items()}
    blocks = {
        name: 1 << (2 * (pool.max_pods_per_node or DEFAULT_MAX_PODS) - 1).bit_length()
        for name, pool in settings.pools.items()
    }
    nodes = sum(most.values())
    rdma_nodes = sum(most[name] for name in settings.pools_with_rdma("networks"))
    needs = {
        "nodeRange": (nodes, 1, nodes, _RESERVED),
        "podRange": (sum(most[name] * blocks[name] for name in most), 1, nodes, 0),
        "gvnicRange": (rdma_nodes, 1, rdma_nodes, _RESERVED),
        "rdmaRange": (rdma_nodes, RDMA_NICS, rdma_nodes, _RESERVED),
    }
    for key in (key for key in needs if key in used):
        addresses, parts, pool_nodes, reserved = needs[key]
        has = ipaddress.IPv4Network(used[key]).num_addresses // parts - reserved
        if addresses > has:
            given = settings.network.model_dump(by_alias=True)[key]
            facts = {
                "range_key": key,
                "range": used[key],
                "has": f"{has:,}",
                "nodes": f"{pool_nodes:,}",
            }
            prefix = 32 - ((addresses + reserved) * parts - 1).bit_length()
            enough = (
                f"make it at least a /{prefix}"
                if given
                else f"widen cidr, or set {key} to at least a /{prefix}"
            )
            facts |= {
                "addresses": f"{addresses:,}",
                "place": key if given else "cidr",
                "enough": enough,
            }
            facts |= {"where": f" in each of its {parts} subnetworks" if parts > 1 else ""}
            facts |= {"or_pods": " or maxPodsPerNode" if key == "podRange" else ""}
            yield from broken(_TABLES["no_room"], _NETWORK, **facts)
