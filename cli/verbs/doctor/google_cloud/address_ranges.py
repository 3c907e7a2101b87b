"""Checks of the address ranges of existing subnetworks: sizes, overlaps, and what berths reach."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from itertools import combinations
from typing import Any

from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.gke import (
    AddressNeed,
    ExistingNetwork,
    address_needs,
    size_that_gke_refuses,
)
from berth.stacks.settings.environment import EnvironmentSettings

NETWORKS = Topic("networks")

_OF_THE_CLUSTER = ("nodeRange", "podRange", "serviceRange")


@dataclass(frozen=True)
class SubnetworkRange:
    """Range of addresses of an existing subnetwork.

    Attributes:
        key: setting of berth's own networks whose part the range has: `podRange`.
        network: the addresses.
        subnetwork: name of the subnetwork.
        secondary: name of the secondary range; empty for the subnetwork's own.
    """

    key: str
    network: IPv4Network
    subnetwork: str
    secondary: str = ""

    @property
    def words(self) -> str:
        """Words for the range, with its addresses."""
        if self.secondary:
            return f"range {self.secondary} {self.network} of subnetwork {self.subnetwork}"
        return f"subnetwork {self.subnetwork} {self.network}"


def ranges_of_subnetworks(
    existing: ExistingNetwork, found: Mapping[str, Mapping[str, Any]]
) -> list[SubnetworkRange]:
    """Return the ranges of existing subnetworks that nodes, pods and Services take addresses of.

    Args:
        existing: names of the networks.
        found: subnetworks by name, as the API has them; those that are not there are left out.
    """
    primary = found.get(existing.subnetwork, {})
    ranges = _primary_range("nodeRange", existing.subnetwork, primary)
    keys = {existing.pod_range: "podRange", existing.service_range: "serviceRange"}
    for entry in primary.get("secondaryIpRanges") or []:
        name = str(entry.get("rangeName"))
        if name in keys and entry.get("ipCidrRange"):
            network = IPv4Network(entry["ipCidrRange"])
            ranges.append(SubnetworkRange(keys[name], network, existing.subnetwork, name))
    if existing.gvnic:
        name = existing.gvnic.subnetwork
        ranges += _primary_range("gvnicRange", name, found.get(name, {}))
    for name in existing.rdma.subnetworks if existing.rdma else ():
        ranges += _primary_range("rdmaRange", name, found.get(name, {}))
    return ranges


def _primary_range(key: str, name: str, subnetwork: Mapping[str, Any]) -> list[SubnetworkRange]:
    cidr = subnetwork.get("ipCidrRange")
    return [SubnetworkRange(key, IPv4Network(cidr), name)] if cidr else []


def check_ranges(
    settings: EnvironmentSettings, ranges: Iterable[SubnetworkRange], project: str, region: str
) -> Iterable[DoctorFinding]:
    """Check existing ranges as rules check those of berth's own networks.

    Addresses that others use are unknown, so that a range may be too small nevertheless.

    Args:
        settings: the environment.
        ranges: the ranges.
        project: project of the subnetworks.
        region: their region.
    """
    ranges = list(ranges)
    needs = address_needs(settings)
    for range_ in ranges:
        if range_.key == "serviceRange":
            refused = size_that_gke_refuses(range_.network)
            if refused:
                yield NETWORKS.missing(
                    f"range {range_.secondary} of subnetwork {range_.subnetwork}: {refused}",
                    _new_range(range_, 20, project, region),
                )
            continue
        need = needs[range_.key]
        room = need.room_in(range_.network)
        if need.addresses > room:
            yield NETWORKS.missing(
                f"{range_.words} has room for {max(room, 0):,} addresses, but {need.words}",
                _way_to_room(range_, need, project, region),
            )
    for first, second in combinations(ranges, 2):
        if first.network.overlaps(second.network):
            yield NETWORKS.missing(
                f"{first.words} overlaps {second.words}: the interfaces of a node need addresses of"
                " their own",
                "environment.network.existing: name subnetworks apart from each other",
            )
    yield from _check_reachable(settings.isolation.reachable, ranges)


def _way_to_room(range_: SubnetworkRange, need: AddressNeed, project: str, region: str) -> str:
    """Return the command that makes room for the nodes, or what needs less of it."""
    if range_.secondary:
        new_range = _new_range(range_, need.prefix(), project, region)
        return (
            f"{new_range}   # then network.existing.{range_.key}: NEW; or lower the pools' nodes or"
            " maxPodsPerNode"
        )
    return (
        f"gcloud compute networks subnets expand-ip-range {range_.subnetwork}"
        f" --project={project} --region={region} --prefix-length={need.prefix()}"
        "   # or lower the pools' nodes"
    )


def _new_range(range_: SubnetworkRange, prefix: int, project: str, region: str) -> str:
    """Return the command that adds a range; Google Cloud resizes no secondary one."""
    return (
        f"gcloud compute networks subnets update {range_.subnetwork}"
        f" --project={project} --region={region} --add-secondary-ranges=NEW=ADDRESS/{prefix}"
    )


def _check_reachable(
    reachable: Iterable[str], ranges: Iterable[SubnetworkRange]
) -> Iterable[DoctorFinding]:
    """Yield ranges of `isolation.reachable` with nodes, pods or Services, which match none."""
    of_cluster = [range_ for range_ in ranges if range_.key in _OF_THE_CLUSTER]
    for cidr in reachable:
        network = IPv4Network(cidr, strict=False)
        inside = [range_.words for range_ in of_cluster if network.overlaps(range_.network)]
        if inside:
            yield NETWORKS.warning(
                f"{cidr} of isolation.reachable holds {' and '.join(inside)}, and Dataplane V2"
                " matches no range against the cluster's nodes, pods and Services: berths reach"
                " none of them by it",
                "environment.isolation.reachableNamespaces: [NAME]",
            )
