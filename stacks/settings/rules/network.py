"""The VPC networks: their address ranges."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable

from stacks.settings.environment import EnvironmentSettings
from stacks.settings.problems import Path, Problem
from stacks.settings.ranges import ranges_of

_NETWORK: Path = ("environment", "network")
_RANGES = {
    "node_range": "nodeRange",
    "pod_range": "podRange",
    "service_range": "serviceRange",
    "gvnic_range": "gvnicRange",
    "rdma_range": "rdmaRange",
}
_WIDEST, _NARROWEST = 8, 20


def problems(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Ranges that cannot be."""
    if settings.cluster.existing or settings.network.existing:
        return
    prefix = ipaddress.IPv4Network(settings.network.cidr).prefixlen
    if not _WIDEST <= prefix <= _NARROWEST:
        yield Problem(
            (*_NETWORK, "cidr"),
            f"{settings.network.cidr} is a /{prefix}, but the ranges of nodes, pods and Services are cut from /{_WIDEST} to"
            f" /{_NARROWEST}; write for example 10.0.0.0/13",
        )
        return
    yield from _overlaps(settings)


def used_ranges(settings: EnvironmentSettings) -> dict[str, str]:
    """The ranges that the environment uses, by the key of each."""
    ranges = ranges_of(settings.network)
    used = {"nodeRange": ranges.nodes, "podRange": ranges.pods, "serviceRange": ranges.services}
    if any(pool.rdma == "networks" for pool in settings.pools.values()):
        used |= {"gvnicRange": ranges.gvnic, "rdmaRange": ranges.rdma}
    return used


def _overlaps(settings: EnvironmentSettings) -> Iterable[Problem]:
    given = {alias for field, alias in _RANGES.items() if getattr(settings.network, field)}
    used = used_ranges(settings)
    rests_on = tuple((*_NETWORK, key) for key in ("cidr", *used))
    for pair in itertools.combinations(used, 2):
        # It is said of the one that was written by hand.
        one, other = pair if pair[1] in given or pair[0] not in given else reversed(pair)
        if ipaddress.IPv4Network(used[one]).overlaps(ipaddress.IPv4Network(used[other])):
            yield Problem(
                (*_NETWORK, other),
                f"{used[other]} overlaps {one} {used[one]}; give them apart from each other, or take {other} out",
                rests_on=rests_on,
            )
