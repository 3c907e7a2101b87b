"""Rules of address ranges of new networks: their sizes, overlaps, room for the pools' nodes.

A subnetwork loses four addresses to Google Cloud, and the smallest one is a /29 ("Subnets",
https://docs.cloud.google.com/vpc/docs/subnets).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network
from itertools import combinations

from berth.components.core.rules import Breach, Rules
from berth.components.gke.addresses import address_needs, size_that_gke_refuses
from berth.components.gke.network_settings import (
    NARROWEST_CIDR,
    WIDEST_CIDR,
    ranges_of,
)
from berth.components.gke.settings import GkeSettings
from berth.components.hardware.machines import RDMA_NICS

_SMALLEST_SUBNETWORK = 29

_KEYS = ("nodeRange", "podRange", "serviceRange", "gvnicRange", "rdmaRange")
_RANGES = tuple(f"network.{key}" for key in _KEYS)
_ALL_RANGES = tuple(f"environment.network.{key}" for key in ("cidr", *_KEYS))


@dataclass(frozen=True)
class CreatedRanges:
    """Ranges of the networks that berth creates for an environment."""

    environment: GkeSettings

    @property
    def cidr_prefix(self) -> int:
        """Length of the prefix of `cidr`."""
        return IPv4Network(self.environment.network.cidr).prefixlen

    @cached_property
    def networks(self) -> Mapping[str, IPv4Network]:
        """Ranges in use by key, given or cut from `cidr`; none if `cidr` cannot be cut."""
        if not self.environment.network.can_be_cut:
            return {}
        ranges = ranges_of(self.environment.network)
        texts = {"nodeRange": ranges.nodes, "podRange": ranges.pods}
        texts["serviceRange"] = ranges.services
        if self.environment.pools_with_rdma("networks"):
            texts["gvnicRange"] = ranges.gvnic
            texts["rdmaRange"] = ranges.rdma
        return {key: IPv4Network(text) for key, text in texts.items()}

    @cached_property
    def written_keys(self) -> set[str]:
        """Keys of the ranges that are written in the settings."""
        written = self.environment.network.model_dump(by_alias=True, exclude_none=True)
        return written.keys() & set(_KEYS)

    @property
    def services_have_a_size_of_gke(self) -> bool:
        """Whether GKE takes the range of Services by its size."""
        return size_that_gke_refuses(self.networks.get("serviceRange")) is None

    @property
    def too_small(self) -> list[str]:
        """Keys of the ranges that have no room for Google Cloud's smallest subnetworks."""
        return [
            key for key, network in self.networks.items() if network.prefixlen > _narrowest(key)
        ]


CREATED_RANGES = Rules[CreatedRanges](GkeSettings)
"""Rules of the ranges of networks that berth creates."""


@CREATED_RANGES.problem("network.cidr")
def cidr_that_cannot_be_cut(ranges: CreatedRanges) -> str | None:
    """Ranges of all networks are cut from one range."""
    if ranges.environment.network.can_be_cut:
        return None
    return (
        f"{ranges.environment.network.cidr} is a /{ranges.cidr_prefix}, but the ranges of nodes,"
        f" pods and Services are cut from /{WIDEST_CIDR} to /{NARROWEST_CIDR}; write for example"
        " 10.0.0.0/13"
    )


@CREATED_RANGES.problem("network.serviceRange")
def services_of_a_size_that_gke_refuses(ranges: CreatedRanges) -> str | None:
    """GKE takes a /16 to a /28 for Services (see WIDEST_SERVICES)."""
    return size_that_gke_refuses(ranges.networks.get("serviceRange"))


@CREATED_RANGES.problem(*_RANGES)
def ranges_that_google_cloud_finds_too_small(ranges: CreatedRanges) -> Iterator[Breach]:
    """A range has room for the smallest subnetworks."""
    for key in ranges.too_small:
        network = ranges.networks[key]
        parts = _subnetworks(key)
        cut = f", cut into {parts}," if parts > 1 else ""
        yield Breach(
            f"{network} is a /{network.prefixlen}{cut} but the smallest subnetwork is a"
            f" /{_SMALLEST_SUBNETWORK}; give at least a /{_narrowest(key)}",
            at=("network", key),
        )


@CREATED_RANGES.problem(*_RANGES, rests_on=_ALL_RANGES)
def overlapping_ranges(ranges: CreatedRanges) -> Iterator[Breach]:
    """All networks of a cluster have addresses of their own."""
    for first, second in combinations(ranges.networks, 2):
        if not ranges.networks[first].overlaps(ranges.networks[second]):
            continue
        # The range that is written in the settings is the one to change.
        only_first_given = first in ranges.written_keys and second not in ranges.written_keys
        other, wrong = (second, first) if only_first_given else (first, second)
        yield Breach(
            f"{ranges.networks[wrong]} overlaps {other} {ranges.networks[other]}; give them apart"
            f" from each other, or take {wrong} out",
            at=("network", wrong),
        )


@CREATED_RANGES.problem("network.cidr", *_RANGES, rests_on=_ALL_RANGES)
def ranges_without_room_for_the_nodes(ranges: CreatedRanges) -> Iterator[Breach]:
    """All nodes that the pools can have get addresses, those of an upgrade included."""
    if ranges.too_small or not ranges.services_have_a_size_of_gke:
        return
    for key, need in address_needs(ranges.environment).items():
        network = ranges.networks.get(key)
        if network is None:
            continue
        parts = _subnetworks(key)
        room = need.room_in(network, parts)
        if need.addresses <= room:
            continue
        prefix = need.prefix(parts)
        where = f" in each of its {parts} subnetworks" if parts > 1 else ""
        is_written = key in ranges.written_keys
        wider = (
            f"make it at least a /{prefix}"
            if is_written
            else f"widen cidr, or set {key} to at least a /{prefix}"
        )
        or_pods = " or maxPodsPerNode" if key == "podRange" else ""
        yield Breach(
            f"{key} {network} has room for {room:,} addresses{where}, but {need.words}; {wider}, or"
            f" lower the pools' nodes{or_pods}",
            at=("network", key if is_written else "cidr"),
        )


def _subnetworks(key: str) -> int:
    """Return the number of subnetworks that a range is cut into."""
    return RDMA_NICS if key == "rdmaRange" else 1


def _narrowest(key: str) -> int:
    """Return the longest prefix of a range that has room for the smallest subnetworks."""
    return _SMALLEST_SUBNETWORK - (_subnetworks(key) - 1).bit_length()
