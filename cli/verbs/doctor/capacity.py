"""Checks of capacity: reservations and quotas, beside the machines that run in the project now."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError, last
from berth.components.core.types import region_of
from berth.components.gke import PoolSettings
from berth.components.hardware.machines import Machine, machine_of
from berth.components.hardware.quota_names import Quota, quotas_taken, usual_quota
from berth.stacks.settings.environment import EnvironmentSettings

RESERVATIONS, QUOTA = Topic("reservations"), Topic("quota")

# Labels that GKE gives to its nodes' machines
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/creating-managing-labels).
CLUSTER_LABEL, POOL_LABEL = "goog-k8s-cluster-name", "goog-k8s-node-pool-name"

_FIELDS = (
    "nextPageToken,items/*/instances(machineType,zone,labels,scheduling/provisioningModel,scheduling/preemptible,"
    "guestAccelerators,reservationAffinity/consumeReservationType)"
)
_PAGES = 40
_PAGE = 500


@dataclass(frozen=True)
class Running:
    """Running machine."""

    machine: Machine
    zone: str
    capacity: str
    """`on-demand`, `spot`, `flex-start` or `reservation`."""
    pool: str
    """The node pool of this environment that it is of, "" for all others."""


Machines = Sequence[Running] | None
"""Machines that run in a project; None where they could not be listed."""


def running(google: Google, cluster: str) -> list[Running]:
    """Return every machine of the project, with its pool in the environment's cluster."""
    found: list[Running] = []
    query: dict[str, Any] = {"fields": _FIELDS, "maxResults": _PAGE, "returnPartialSuccess": "true"}
    for _ in range(_PAGES):
        answer = google.get("compute", f"projects/{google.project}/aggregated/instances", **query)
        for place in (answer.get("items") or {}).values():
            found += [_read(instance, cluster) for instance in place.get("instances") or []]
        if not answer.get("nextPageToken"):
            break
        query["pageToken"] = answer["nextPageToken"]
    return found


def _read(instance: dict[str, Any], cluster: str) -> Running:
    labels = instance.get("labels") or {}
    gpus: dict[str, Any] = next(iter(instance.get("guestAccelerators") or []), {})
    kind, count = last(gpus.get("acceleratorType")), int(gpus.get("acceleratorCount") or 0)
    return Running(
        machine=machine_of(last(instance.get("machineType")), kind, count),
        zone=last(instance.get("zone")),
        capacity=_capacity(instance),
        pool=str(labels.get(POOL_LABEL, "")) if labels.get(CLUSTER_LABEL) == cluster else "",
    )


def _capacity(instance: dict[str, Any]) -> str:
    scheduling = instance.get("scheduling") or {}
    model = scheduling.get("provisioningModel")
    kind = (instance.get("reservationAffinity") or {}).get("consumeReservationType")
    if kind == "SPECIFIC_RESERVATION" or model == "RESERVATION_BOUND":
        return "reservation"
    if model == "FLEX_START":
        return "flex-start"
    return "spot" if model == "SPOT" or scheduling.get("preemptible") else "on-demand"


def check_reservations(
    google: Google, settings: EnvironmentSettings, machines: Machines
) -> Iterable[Finding]:
    """Yield findings about pools' reservations: existence, machine type, zone, free machines."""
    for name, pool in settings.pools.items():
        if pool.capacity.kind != "reservation" or pool.capacity.reservation is None:
            continue
        for zone in settings.zones_of(pool):
            own = sum((machine.pool, machine.zone) == (name, zone) for machine in machines or ())
            try:
                yield _reservation(google, name, pool, zone, own)
            except GoogleError as error:
                named = pool.capacity.reservation
                yield RESERVATIONS.found(
                    "unknown", reservation=named, reason=error.problem, remedy=error.remedy
                )


def _reservation(google: Google, name: str, pool: PoolSettings, zone: str, own: int) -> Finding:
    capacity, owner = pool.capacity, pool.capacity.project or google.project
    path = f"projects/{owner}/zones/{zone}/reservations/{capacity.reservation}"
    facts: dict[str, Any] = {
        "pool": name,
        "reservation": capacity.reservation,
        "zone": zone,
        "owner": owner,
    }
    found = google.exists("compute", path)
    if found is None:
        return RESERVATIONS.found("none", **facts)
    if wrong := _of_other_kind(found, pool):
        return RESERVATIONS.found("unfit", wrong=wrong, **facts)
    counts, place = (
        found.get("specificReservation") or {},
        f"reservation {capacity.reservation} in {zone}",
    )
    if capacity.block:
        answer = google.exists("compute", f"{path}/reservationBlocks/{capacity.block}")
        if answer is None:
            return RESERVATIONS.found("no-block", place=place, block=capacity.block, **facts)
        counts, place = answer.get("resource") or answer, f"block {capacity.block} of {place}"
    count, in_use = (
        int(counts.get(key) or 0) for key in ("count", "inUseCount")
    )  # numbers come as text
    free = count - max(in_use - own, 0)
    facts |= {
        "place": place,
        "count": count,
        "machine": pool.machine_type,
        "most": pool.nodes_at_most,
    }
    if pool.nodes_at_most > free:
        return RESERVATIONS.found("too-small", used=count - free, **facts)
    return RESERVATIONS.found("enough", free=free, **facts)


def _of_other_kind(found: dict[str, Any], pool: PoolSettings) -> str:
    """Why a reservation does not do for a pool, or ""."""
    if found.get("status") not in (None, "READY"):
        return f"is {found['status']}, not READY"
    properties = (found.get("specificReservation") or {}).get("instanceProperties") or {}
    machine, maintenance = properties.get("machineType"), properties.get("maintenanceInterval")
    if machine and machine != pool.machine_type:
        return f"has machines of type {machine}, but the pool's are {pool.machine_type}"
    if maintenance and maintenance != (pool.host_maintenance or "").upper().replace("-", "_"):
        setting = maintenance.lower().replace("_", "-")
        return (
            f"has maintenance interval {maintenance}, which its pools must have too; write"
            f" hostMaintenance: {setting}"
        )
    if found.get("resourcePolicies") and pool.compact_placement:
        return (
            "has a placement policy of its own, beside which GKE takes no other; take"
            " compactPlacement out"
        )
    ssds = len(properties.get("localSsds") or ())
    if ssds and ssds != pool.local_ssd_count:
        return f"has machines with {ssds} local SSDs, but the pool's have {pool.local_ssd_count}"
    if found.get("specificReservationRequired") is False:
        return (
            "is open to any machine of the project, so no pool can name it; leave the pool's"
            " `capacity` out to use it"
        )
    return ""


_UNLIMITED = -1
_AS_GOOD_AS_UNLIMITED = 2**62


@dataclass(frozen=True)
class Limit:
    """A limit, and what is used of it."""

    limit: int | None
    """None for none."""
    used: int | None
    """None where Google does not tell."""


Limits = dict[Quota, Limit | GoogleError]


def needs(settings: EnvironmentSettings) -> tuple[Counter[Quota], dict[Quota, list[str]]]:
    """Return the most that the pools take, and the pools behind each quota."""
    amounts, pools = Counter[Quota](), dict[Quota, list[str]]()
    for name, pool in settings.pools.items():
        # Those that come with the machine type (A2 Ultra, A3, A4) come with its GPU quota.
        ssds = pool.local_ssds.count or 0 if pool.local_ssds and not pool.machine.local_ssds else 0
        for quota, amount in quotas_taken(pool.machine, pool.capacity.kind, ssds).items():
            if pool.nodes_at_most:
                amounts[quota] += amount * pool.nodes_at_most
                pools.setdefault(quota, []).append(name)
    return amounts, pools


def check_quotas(
    google: Google, settings: EnvironmentSettings, machines: Machines
) -> Iterable[Finding]:
    """Yield a finding for each quota of the pools, beside the machines that could be listed."""
    amounts, pools = needs(settings)
    if not amounts:
        yield QUOTA.found("none-needed")
        return
    region = settings.in_region
    limits = _limits(
        google, region, {*amounts, *(usual_quota(quota) for quota in amounts if quota.preemptible)}
    )
    _without_preemptible(limits, amounts, pools)
    own, others = _used(machines or [], region, limits)
    for quota in sorted(amounts):
        limit = limits[quota]
        if isinstance(limit, GoogleError):
            yield QUOTA.found(
                "unknown", quota=_named(quota, region), reason=limit.problem, remedy=limit.remedy
            )
            continue
        elsewhere = others[quota] if limit.used is None else max(limit.used - own[quota], 0)
        needed, names = amounts[quota] + elsewhere, pools[quota]
        who = f"pool {names[0]} takes" if len(names) == 1 else f"pools {', '.join(names)} take"
        used = f", others use {elsewhere}" if elsewhere else ""
        asked = f"{_named(quota, region)}: {who} up to {amounts[quota]}{used}"
        pairs = ",".join(f"{key}={value}" for key, value in quota.dimensions(region).items())
        ask = {
            "project": google.project,
            "id": quota.id,
            "dimensions": f" --dimensions={pairs}" if pairs else "",
        }
        key = (
            "unlimited"
            if limit.limit is None
            else "enough"
            if needed <= limit.limit
            else "too-small"
        )
        yield QUOTA.found(key, asked=asked, limit=limit.limit, value=needed, **ask)


def _named(quota: Quota, region: str) -> str:
    return f"{quota} in {'all regions' if quota.everywhere else region}"


def _without_preemptible(
    limits: Limits, amounts: Counter[Quota], pools: dict[Quota, list[str]]
) -> None:
    """A project with no preemptible quota of a kind takes the usual one for Spot and flex-start."""
    for quota in [quota for quota in amounts if quota.preemptible]:
        limit = limits[quota]
        if isinstance(limit, Limit) and limit.limit == 0:
            other = usual_quota(quota)
            amounts[other] += amounts.pop(quota)
            pools[other] = list(dict.fromkeys([*pools.get(other, []), *pools.pop(quota)]))


def _used(
    machines: Iterable[Running], region: str, limits: Limits
) -> tuple[Counter[Quota], Counter[Quota]]:
    """Return the quotas that the environment's own machines take, and those of all others."""
    own, others = Counter[Quota](), Counter[Quota]()
    for machine in machines:
        here = region_of(machine.zone) == region
        for quota, amount in quotas_taken(machine.machine, machine.capacity).items():
            if not (here or quota.everywhere):
                continue
            limit = limits.get(quota)
            counted = (
                usual_quota(quota)
                if quota.preemptible and isinstance(limit, Limit) and limit.limit == 0
                else quota
            )
            (own if machine.pool else others)[counted] += amount
    return own, others


def _limits(google: Google, region: str, quotas: set[Quota]) -> Limits:
    """Limits with their use from Compute Engine; limits of newer GPUs from the Cloud Quotas API."""
    here = _listed(
        google.get("compute", f"projects/{google.project}/regions/{region}", fields="quotas")
    )
    everywhere = _listed(google.get("compute", f"projects/{google.project}", fields="quotas"))
    found: Limits = {}
    for quota in quotas:
        listed = (everywhere if quota.everywhere else here).get(quota.metric)
        if listed is not None and not quota.family:
            found[quota] = listed
    return found | {
        quota: _from_cloud_quotas(google, region, quota) for quota in sorted(quotas - found.keys())
    }


def _listed(answer: dict[str, Any]) -> dict[str, Limit]:
    return {
        str(entry["metric"]): Limit(_number(entry.get("limit", 0)), int(entry.get("usage", 0)))
        for entry in answer.get("quotas") or []
    }


def _from_cloud_quotas(google: Google, region: str, quota: Quota) -> Limit | GoogleError:
    service = f"projects/{google.project}/locations/global/services/compute.googleapis.com"
    path = f"{service}/quotaInfos/{quota.id}"
    try:
        info = google.exists("cloudquotas", path)
    except GoogleError as error:
        return error
    if info is None:
        return Limit(None, None)
    return Limit(limit_in(info, quota.dimensions(region)), None)


def limit_in(info: dict[str, Any], dimensions: dict[str, str]) -> int | None:
    """Return the limit for these dimensions, of the entry that names most of them; None for none.

    Args:
        info: a QuotaInfo
            (https://docs.cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos).
        dimensions: such as `{"region": "us-central1", "gpu_family": "NVIDIA_B200"}`.
    """
    best: tuple[int, int | None] = (-1, 0)
    for entry in info.get("dimensionsInfos") or []:
        named = entry.get("dimensions") or {}
        places = entry.get("applicableLocations")
        if any(dimensions.get(key) != value for key, value in named.items()):
            continue
        if places and "region" in dimensions and not {dimensions["region"], "global"} & set(places):
            continue
        # A limit of 0 is left out of the answer.
        best = max(
            best,
            (len(named), _number((entry.get("details") or {}).get("value", 0))),
            key=lambda entry: entry[0],
        )
    return best[1]


def _number(value: Any) -> int | None:
    number = int(float(value)) if not isinstance(value, str) else int(value)
    return None if number == _UNLIMITED or number >= _AS_GOOD_AS_UNLIMITED else number
