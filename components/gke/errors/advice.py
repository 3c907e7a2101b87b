"""Advice about errors of Google Cloud: what each one means, and what fixes it.

The texts are those that public bug reports quote, such as
github.com/hashicorp/terraform-provider-google/issues/6287 (stock-out),
github.com/vanvalenlab/kiosk-console/issues/367 (quota) and
github.com/GoogleCloudPlatform/cluster-toolkit/pull/5043 (reservation).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from berth.components.gke.errors.failed_pool import FailedPool
from berth.components.hardware.machines import CapacityKind


@dataclass(frozen=True)
class _Failure:
    """Error of Google Cloud.

    Attributes:
        error: Google's text.
        project: project of the environment.
        pool: node pool that the error is about; None for other resources.
    """

    error: str
    project: str
    pool: FailedPool | None

    @property
    def reserved_pool(self) -> FailedPool | None:
        """Node pool that the error is about, if its machines are of a reservation."""
        by_reservation = self.pool and self.pool.settings.capacity.kind == "reservation"
        return self.pool if by_reservation else None


def advice(error: str, project: str, pool: FailedPool | None = None) -> list[str]:
    """Return a line for each thing that is wrong; none where the error is not known.

    Args:
        error: Google's text.
        project: project of the environment.
        pool: node pool that the error is about; None for other resources.
    """
    failure = _Failure(error, project, pool)
    for explain in _EXPLANATIONS:
        if lines := list(dict.fromkeys(explain(failure))):
            return lines
    return []


_SHORT_QUOTA = re.compile(
    r'(?i)resource:? "(?P<metric>\w+)": (?:The )?request requires'
    r" '(?P<asked>[\d.]+?)(?:\.0)?' and is short '(?P<short>[\d.]+?)(?:\.0)?'"
)
_QUOTA_WITH_LIMIT = re.compile(
    r"(?i)Quota '(?P<metric>\w+)' exceeded\.\s+Limit:\s(?P<limit>\d+(?:\.\d*[1-9])?)"
)
_QUOTA = re.compile(r"(?i)Quota '(?P<metric>\w+)' exceeded\.")


def _short_quota(failure: _Failure) -> Iterator[str]:
    for match in _SHORT_QUOTA.finditer(failure.error):
        yield (
            f"quota {match['metric']}: {match['asked']} are asked for, {match['short']} more than"
            f" the project may have; {_ask_for_more(failure, match['metric'])}"
        )


def _quota_with_limit(failure: _Failure) -> Iterator[str]:
    for match in _QUOTA_WITH_LIMIT.finditer(failure.error):
        yield (
            f"quota {match['metric']}: the project may have {match['limit']};"
            f" {_ask_for_more(failure, match['metric'])}"
        )


def _quota(failure: _Failure) -> Iterator[str]:
    for match in _QUOTA.finditer(failure.error):
        yield (
            f"quota {match['metric']}: there is not enough of it;"
            f" {_ask_for_more(failure, match['metric'])}"
        )


def _ask_for_more(failure: _Failure, metric: str) -> str:
    """Return the remedy of a quota that is used up."""
    text = (
        "ask for more at https://console.cloud.google.com/iam-admin/quotas?project="
        f"{failure.project} (filter: {metric})"
    )
    pool = failure.pool
    if pool is None:
        return text
    text += f", or set fewer {pool.key}.nodes"
    if pool.settings.capacity.kind == "on-demand" and pool.settings.machine.gpus:
        text += "; machines of a reservation take no quota"
    return text


_FULL_RESERVATION = re.compile(
    r"(?s)Reservation does not have enough resources.*?required (?P<asked>\d+) and short of"
    r" (?P<short>\d+)"
)
# Of single machines, which fail after GKE has accepted the pool (skypilot-org/skypilot/pull/2352,
# and the autoscaler's patterns: kubernetes/autoscaler/pull/7319).
_NO_RESERVED_MACHINE = re.compile(
    r"(?i)reservation '?[^']*'? does not have (?:available resources|sufficient capacity)"
)
_UNNAMED_RESERVATION = re.compile("(?i)specificReservationRequired is not set")
_OTHER_RESERVATION = re.compile(
    "(?is)reservation.*(?:incompatible|does not match|not compatible)"
    "|Incompatible AggregateReservation"
)
_MISSING_RESERVATION = re.compile(
    '(?i)reservation "[^"]*" not found|Could not find the given reservation'
    "|reservations/[^']*' was not found"
)


def _full_reservation(failure: _Failure) -> Iterator[str]:
    pool = failure.reserved_pool
    if pool is None:
        return
    for match in _FULL_RESERVATION.finditer(failure.error):
        yield (
            f"{pool.reservation} has too few machines left: {match['asked']} are needed, and"
            f" {match['short']} of them are lacking; set fewer {pool.key}.nodes, or free some (who"
            f" uses it: {pool.describe_reservation})"
        )


def _no_reserved_machine(failure: _Failure) -> Iterator[str]:
    pool = failure.reserved_pool
    if pool and _NO_RESERVED_MACHINE.search(failure.error):
        yield (
            f"{pool.reservation} has no machine left for each node; set fewer {pool.key}.nodes, or"
            f" free some (who uses it: {pool.describe_reservation})"
        )


def _unnamed_reservation(failure: _Failure) -> Iterator[str]:
    pool = failure.reserved_pool
    if pool and _UNNAMED_RESERVATION.search(failure.error):
        yield (
            f"{pool.reservation} is taken by any matching machine and cannot be named: take"
            f" {pool.key}.capacity out, or make it with --require-specific-reservation"
        )


def _other_reservation(failure: _Failure) -> Iterator[str]:
    pool = failure.reserved_pool
    if pool and _OTHER_RESERVATION.search(failure.error):
        yield (
            f"{pool.reservation} is for other machines than {pool.settings.machine_type} with its"
            " GPUs and local SSDs, or has a placement or a maintenance interval that"
            f" {pool.key} lacks; give {pool.key} what the reservation has"
            f" ({pool.describe_reservation})"
        )


def _missing_reservation(failure: _Failure) -> Iterator[str]:
    pool = failure.reserved_pool
    if pool and _MISSING_RESERVATION.search(failure.error):
        capacity = pool.settings.capacity
        block = f", or has no block {capacity.block!r}" if capacity.block else ""
        if capacity.sub_block:
            block += f" with a sub-block {capacity.sub_block!r}"
        yield (
            f"{pool.reservation} is not in {' or '.join(pool.zones)}{block}, or is not shared with"
            f" project {failure.project}; correct {pool.key}.capacity"
            f" ({pool.describe_reservation})"
        )


_STOCK_OUT = re.compile(
    r"ZONE_RESOURCE_POOL_EXHAUSTED|GCE_STOCKOUT|STOCKOUT|does not have enough resources available"
    r"|is currently unavailable in the \S+ zone"
)
_OTHER_ZONES = re.compile(r"Consider trying your request in the ([\w, -]+?) zone\(s\)")
_OTHER_CAPACITY: dict[CapacityKind, str] = {
    "on-demand": "a reservation or flex-start, which waits for machines",
    "spot": "on-demand machines or flex-start, which waits for them",
    "flex-start": "a reservation",
}
"""Capacity that may have machines where another kind has none."""


def _stock_out(failure: _Failure) -> Iterator[str]:
    if not _STOCK_OUT.search(failure.error):
        return
    pool = failure.pool
    if pool is None:
        yield (
            "Google Cloud has no machines of this kind there at the moment; try again later, or"
            " another zone"
        )
        return
    problem = f"Google Cloud has no {pool.machines} at the moment, whatever the quota says"
    kind = pool.settings.capacity.kind
    if kind == "reservation":
        yield (
            f"{problem}; try again later, or ask Google's support, since these machines are"
            " reserved for you"
        )
        return
    other_zones = _OTHER_ZONES.search(failure.error)
    now = f"; there are some now in {other_zones[1]}" if other_zones else ""
    yield (
        f"{problem}; try again later, another zone ({pool.key}.zones{now}), or"
        f" {_OTHER_CAPACITY[kind]} ({pool.key}.capacity)"
    )


def _pool_without_machines(failure: _Failure) -> Iterator[str]:
    """Advice about a new pool without its machines (resource_container_node_pool.go)."""
    pool = failure.pool
    if pool and "was created in the error state" in failure.error:
        place = pool.place
        yield (
            f"the pool exists, but GKE got none or not all of its {pool.machines}; the reason is"
            f" kept with the pool: gcloud container node-pools describe {pool.name} --cluster"
            f" {place.cluster} --location {place.location} --project {failure.project}"
            " --format='value(status,conditions)'; when there are machines, `berth up` goes on"
            " from here"
        )


# hashicorp/terraform-provider-google/issues/15205, since which the provider waits for its timeout.
_BUSY_CLUSTER = re.compile('Too many operations: cluster "[^"]*" hits the concurrent operations')


def _busy_cluster(failure: _Failure) -> Iterator[str]:
    if _BUSY_CLUSTER.search(failure.error):
        yield (
            "GKE was busy with other operations of this cluster all the time: gcloud container"
            f" operations list --project {failure.project} --filter=status=RUNNING; once they have"
            " ended, run this again"
        )


_API_OFF = re.compile("SERVICE_DISABLED|has not been used in project|API has not been enabled")
_SERVICE = re.compile(r"[a-z]+\.googleapis\.com")


def _api_that_is_off(failure: _Failure) -> Iterator[str]:
    service = _SERVICE.search(failure.error)
    if service and _API_OFF.search(failure.error):
        yield (
            f"the API {service[0]} is off in the project: gcloud services enable {service[0]}"
            f" --project {failure.project}"
        )


_CONSTRAINT = re.compile(r"(?P<constraint>constraints/[\w.]+) violated")


def _organization_policy(failure: _Failure) -> Iterator[str]:
    for match in _CONSTRAINT.finditer(failure.error):
        constraint = match["constraint"]
        yield (
            f"a policy of the organization forbids this: {constraint}; see gcloud org-policies"
            f" describe {constraint} --project {failure.project} --effective"
        )


_NO_RDMA = re.compile(r"networkProfiles/(?P<zone>[a-z0-9-]+)-vpc-roce\S* was not found")


def _zone_without_rdma(failure: _Failure) -> Iterator[str]:
    for match in _NO_RDMA.finditer(failure.error):
        yield (
            f"zone {match['zone']} has no RDMA networks; zones that have them: gcloud compute"
            f" network-profiles list --project {failure.project}"
        )


_NO_ADDRESSES = re.compile("(?i)IP_SPACE_EXHAUSTED|free IP space")


def _no_addresses(failure: _Failure) -> Iterator[str]:
    if _NO_ADDRESSES.search(failure.error):
        smaller = f", or a smaller {failure.pool.key}.maxPodsPerNode" if failure.pool else ""
        yield (
            "the subnetwork has no addresses left for more nodes: each takes twice as many for pods"
            " as it may have pods; give a larger network.podRange or network.nodeRange, or, of"
            " existing networks, a wider subnetwork or a further range (berth doctor prints the"
            f" command){smaller}"
        )


_IN_USE = re.compile(
    "(?:network|subnetwork) resource '(?P<used>[^']+)' is already being used by '(?P<user>[^']+)'"
)


def _network_in_use(failure: _Failure) -> Iterator[str]:
    for match in _IN_USE.finditer(failure.error):
        yield (
            f"{match['used']} cannot go while {match['user']} is in it, which this stack did not"
            " make: a load balancer, a firewall rule or machines that GKE left or somebody else"
            f" made; remove it in project {failure.project}, then run this again"
        )


_UNFINISHED_DELETION = re.compile(
    r"deleting GKE (?P<kind>NodePool|cluster): timeout while waiting"
    r"|(?P<again>NodePool) \S+ has state \"STOPPING\""
)
_DELETED = {"NodePool": "the node pool", "cluster": "the cluster"}


def unfinished_deletion(error: str, project: str = "PROJECT") -> Iterator[str]:
    """Yield what to do about a deletion that GKE has not ended within the provider's two hours.

    Sources: what Google's provider says of an operation that goes on, and of a pool that an earlier
    deletion has not ended with; github.com/llm-d/llm-d/pull/2379, which reports of node pools with
    managed RDMA networks that none of them was ever gone.

    Args:
        error: Google's text.
        project: project of the environment.
    """
    for match in _UNFINISHED_DELETION.finditer(error):
        yield (
            f"GKE has not deleted {_DELETED[match['kind'] or match['again']]} in that time, and may"
            " still be at it:"
            f" gcloud container operations list --project {project} --filter=status=RUNNING; once"
            " it is gone, run this again; for a pool that had `rdma: managed`, it may never end:"
            " ask Google's support about the operation"
        )


def _unfinished_deletion(failure: _Failure) -> Iterator[str]:
    yield from unfinished_deletion(failure.error, failure.project)


_PERMISSION = re.compile(
    r"""(?:Required|Permission|required) '?"?(?P<permission>[a-z]+\.[A-Za-z]+\.[A-Za-z]+)"""
)


def _no_permission(failure: _Failure) -> Iterator[str]:
    if match := _PERMISSION.search(failure.error):
        yield (
            f"whoever runs this may not do {match['permission']} in project {failure.project}; the"
            " roles that berth needs are roles/container.admin, roles/compute.networkAdmin,"
            " roles/compute.securityAdmin and, on the nodes' service account,"
            " roles/iam.serviceAccountUser"
        )


_EXPLANATIONS: tuple[Callable[[_Failure], Iterator[str]], ...] = (
    _short_quota,
    _quota_with_limit,
    _quota,
    _full_reservation,
    _no_reserved_machine,
    _unnamed_reservation,
    _other_reservation,
    _missing_reservation,
    _stock_out,
    _pool_without_machines,
    _busy_cluster,
    _api_that_is_off,
    _organization_policy,
    _zone_without_rdma,
    _no_addresses,
    _network_in_use,
    _unfinished_deletion,
    _no_permission,
)
"""Explanations of errors; the first one that has something to say counts."""
