"""Advice about errors of Google Cloud: what an error means, and what fixes it.

The texts of errors are those that public bug reports quote, such as
github.com/hashicorp/terraform-provider-google/issues/6287 (stock-out),
github.com/vanvalenlab/kiosk-console/issues/367 (quota) and
github.com/GoogleCloudPlatform/cluster-toolkit/pull/5043 (reservation).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from berth.components.gke.node_pool_arguments import NodePlace
from berth.components.gke.pool_settings import PoolSettings


@dataclass(frozen=True)
class Pooled:
    """Node pool that an error is about.

    Attributes:
        name: the pool's name.
        settings: the pool's settings.
        place: place of the pool's nodes.
        written: file and line of the settings that describe the pool, where known.
    """

    name: str
    settings: PoolSettings
    place: NodePlace
    written: str = ""

    @property
    def key(self) -> str:
        """Path of the pool in the settings."""
        return f"pools.{self.name}"

    @property
    def machines(self) -> str:
        """Machine type and zones: `a4-highgpu-8g in us-central1-b`."""
        zones, machine_type = self.place.zones, self.settings.machine_type
        return f"{machine_type} in {' or '.join(zones)}" if zones else machine_type


_QUOTA = re.compile(
    r"(?:resource:? \"(?P<metric>\w+)\": (?:The )?request requires '(?P<asked>[\d.]+)' and is short '(?P<short>[\d.]+)'"
    r"|Quota '(?P<exceeded>\w+)' exceeded\.(?:\s+Limit: (?P<limit>[\d.]+))?)",
    re.IGNORECASE,
)
_FULL = re.compile(
    r"Reservation does not have enough resources.*?required (?P<asked>\d+) and short of (?P<short>\d+)", re.DOTALL
)
_NO_RESERVATION = re.compile(
    r"reservation \"[^\"]*\" not found|Could not find the given reservation|reservations/[^']*' was not found",
    re.IGNORECASE,
)
_UNFIT = re.compile(
    r"reservation.*(?:incompatible|does not match|not compatible)|Incompatible AggregateReservation",
    re.IGNORECASE | re.DOTALL,
)
_NOT_SPECIFIC = re.compile(r"specificReservationRequired is not set", re.IGNORECASE)
_STOCK = re.compile(
    r"ZONE_RESOURCE_POOL_EXHAUSTED|GCE_STOCKOUT|STOCKOUT|does not have enough resources available"
    r"|is currently unavailable in the \S+ zone",
)
_ERROR_STATE = re.compile(r"was created in the error state")
_HAS_CAPACITY = re.compile(r"Consider trying your request in the (?P<zones>[\w, -]+?) zone\(s\)")
_SERVICE = re.compile(r"SERVICE_DISABLED|has not been used in project|API has not been enabled")
_SERVICE_NAME = re.compile(r"(?P<service>[a-z]+\.googleapis\.com)")
_PERMISSION = re.compile(r"(?:Required|Permission|required) '?\"?(?P<permission>[a-z]+\.[A-Za-z]+\.[A-Za-z]+)")
_POLICY = re.compile(r"(?P<constraint>constraints/[\w.]+) violated")
_ADDRESSES = re.compile(r"IP_SPACE_EXHAUSTED|not enough free IP space|free IP space", re.IGNORECASE)
_PROFILE = re.compile(r"networkProfiles/(?P<zone>[a-z0-9-]+)-vpc-roce\S* was not found")
_IN_USE = re.compile(r"(?:network|subnetwork) resource '(?P<used>[^']+)' is already being used by '(?P<user>[^']+)'")


def advice(error: str, project: str, pool: Pooled | None = None) -> list[str]:
    """Return a line for each thing that is wrong; none where the error is not known.

    Args:
        error: the provider's text.
        project: Google Cloud project of the environment.
        pool: the node pool that the error is about; None for networks and the cluster.
    """
    for kind in _KINDS:
        lines = list(dict.fromkeys(kind(error, project, pool)))
        if lines:
            return lines
    return []


def _quota(error: str, project: str, pool: Pooled | None) -> Iterator[str]:
    fewer = ""
    if pool:
        reserved = pool.settings.capacity.kind == "on-demand" and pool.settings.machine.gpus
        fewer = f", or set fewer {pool.key}.nodes" + ("; machines of a reservation take no quota" if reserved else "")
    for match in _QUOTA.finditer(error):
        metric = match["metric"] or match["exceeded"]
        asked, short, limit = (str(match[name]).removesuffix(".0") for name in ("asked", "short", "limit"))
        if match["metric"]:
            what = f"{asked} are asked for, {short} more than the project may have"
        else:
            what = f"the project may have {limit}" if match["limit"] else "there is not enough of it"
        yield (
            f"quota {metric}: {what}; ask for more at"
            f" https://console.cloud.google.com/iam-admin/quotas?project={project} (filter: {metric}){fewer}"
        )


def _reservation(error: str, project: str, pool: Pooled | None) -> Iterator[str]:
    if pool is None or pool.settings.capacity.kind != "reservation":
        return
    capacity, key = pool.settings.capacity, pool.key
    owner = capacity.project or project
    zones = pool.place.zones or ("ZONE",)
    describe = f"gcloud compute reservations describe {capacity.reservation} --project {owner} --zone"
    look = "; ".join(f"{describe} {zone}" for zone in zones)
    name = f"reservation {capacity.reservation!r} of project {owner}"
    if match := _FULL.search(error):
        yield (
            f"{name} has too few machines left: {match['asked']} are needed, and {match['short']} of them are lacking;"
            f" set fewer {key}.nodes, or free some (who uses it: {look})"
        )
    elif _NOT_SPECIFIC.search(error):
        yield (
            f"{name} is taken by any matching machine and cannot be named: take {key}.capacity out, or make it with"
            " --require-specific-reservation"
        )
    elif _UNFIT.search(error):
        yield (
            f"{name} is of other machines than {pool.settings.machine_type} with its GPUs and local SSDs; make"
            f" {key} what it is of ({look})"
        )
    elif _NO_RESERVATION.search(error):
        block = f", or has no block {capacity.block!r}" if capacity.block else ""
        yield (
            f"{name} is not in {' or '.join(zones)}{block}, or is not shared with project {project}; correct"
            f" {key}.capacity ({look})"
        )


def _error_state(error: str, project: str, pool: Pooled | None) -> Iterator[str]:
    """Explain the error of a new pool without its machines (resource_container_node_pool.go)."""
    if pool and _ERROR_STATE.search(error):
        yield (
            f"the pool exists, but GKE got none or not all of its {pool.machines}; the reason is kept with the pool:"
            f" gcloud container node-pools describe {pool.name} --cluster {pool.place.cluster} --location"
            f" {pool.place.location} --project {project} --format='value(status,conditions)'; when there are machines,"
            " `pulumi up` goes on from here"
        )


def _stock(error: str, project: str, pool: Pooled | None) -> Iterator[str]:
    del project
    if not _STOCK.search(error):
        return
    if pool is None:
        yield "Google Cloud has no machines of this kind there at the moment; try again later, or another zone"
        return
    found = _HAS_CAPACITY.search(error)
    now = f"; there are some now in {found['zones']}" if found else ""
    elsewhere = f"another zone ({pool.key}.zones{now})"
    ways = {
        "on-demand": f"{elsewhere}, or a reservation or flex-start, which waits for machines ({pool.key}.capacity)",
        "spot": f"{elsewhere}, or on-demand machines or flex-start, which waits for them ({pool.key}.capacity)",
        "flex-start": f"{elsewhere}, or a reservation ({pool.key}.capacity)",
        "reservation": "or ask Google's support, since these machines are reserved for you",
    }
    yield (
        f"Google Cloud has no {pool.machines} at the moment, whatever the quota says; try again later,"
        f" {ways[pool.settings.capacity.kind]}"
    )


def _of_project(error: str, project: str, pool: Pooled | None) -> Iterator[str]:
    """Explain an API that is off, a policy of the organization, or a zone without RDMA networks."""
    del pool
    if _SERVICE.search(error) and (match := _SERVICE_NAME.search(error)):
        service = match["service"]
        yield f"the API {service} is off in the project: gcloud services enable {service} --project {project}"
    for match in _POLICY.finditer(error):
        yield (
            f"a policy of the organization forbids this: {match['constraint']}; see"
            f" gcloud org-policies describe {match['constraint']} --project {project} --effective"
        )
    if match := _PROFILE.search(error):
        yield (
            f"zone {match['zone']} has no RDMA networks; zones that have them: gcloud compute network-profiles list"
            f" --project {project}"
        )


def _addresses(error: str, project: str, pool: Pooled | None) -> Iterator[str]:
    del project
    if _ADDRESSES.search(error):
        fewer = f", or a smaller {pool.key}.maxPodsPerNode" if pool else ""
        yield (
            "the subnetwork has no addresses left for more nodes: each takes twice as many for pods as it may have"
            f" pods; give a larger network.podRange or network.nodeRange{fewer}"
        )


def _in_use(error: str, project: str, pool: Pooled | None) -> Iterator[str]:
    del pool
    for match in _IN_USE.finditer(error):
        yield (
            f"{match['used']} cannot go while {match['user']} is in it, which this stack did not make: a load balancer,"
            f" a firewall rule or machines that GKE left or somebody else made; remove it in project {project}, then"
            " run this again"
        )


def _permission(error: str, project: str, pool: Pooled | None) -> Iterator[str]:
    del pool
    if match := _PERMISSION.search(error):
        yield (
            f"whoever runs this may not do {match['permission']} in project {project}; the roles that berth needs are"
            " roles/container.admin, roles/compute.networkAdmin, roles/compute.securityAdmin and, on the nodes' service"
            " account, roles/iam.serviceAccountUser"
        )


_KINDS: tuple[Callable[[str, str, Pooled | None], Iterator[str]], ...] = (
    *(_quota, _reservation, _stock, _error_state, _of_project, _addresses, _in_use, _permission),
)
