"""Checks of quotas: what the pools take at most, beside the machines that run in the project."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from berth.cli.reach.google_cloud import GoogleClient, GoogleError
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.cli.verbs.doctor.google_cloud.running_machines import RunningMachine, RunningMachines
from berth.components.core.types import region_of
from berth.components.hardware.quota_names import Quota, quotas_taken, usual_quota
from berth.stacks.settings.environment import EnvironmentSettings

QUOTA = Topic("quota")

_UNLIMITED = -1
_AS_GOOD_AS_UNLIMITED = 2**62


@dataclass(frozen=True)
class Limit:
    """Limit of a quota.

    Attributes:
        limit: how much all together may take; None for any amount.
        used: how much is taken now; None where Google does not tell.
    """

    limit: int | None
    used: int | None


Limits = dict[Quota, Limit | GoogleError]


def amounts_by_pool(settings: EnvironmentSettings) -> dict[Quota, dict[str, int]]:
    """Return the most that each pool takes of each quota, by the pool's name."""
    amounts: dict[Quota, dict[str, int]] = {}
    for name, pool in settings.pools.items():
        if not pool.nodes_at_most:
            continue
        ssds = 0
        # Those that come with the machine type (A2 Ultra, A3, A4) come with its GPU quota.
        if pool.local_ssds and not pool.machine.local_ssds:
            ssds = pool.local_ssds.count or 0
        for quota, amount in quotas_taken(pool.machine, pool.capacity.kind, ssds).items():
            amounts.setdefault(quota, {})[name] = amount * pool.nodes_at_most
    return amounts


def check_quotas(
    google: GoogleClient, settings: EnvironmentSettings, machines: RunningMachines
) -> Iterable[DoctorFinding]:
    """Yield a finding for each quota of the pools, beside the machines that could be listed.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    amounts = amounts_by_pool(settings)
    if not amounts:
        yield QUOTA.fine(
            "no pool needs quota: reserved machines used theirs when they were reserved"
        )
        return
    region = settings.in_region
    quotas = set(amounts)
    quotas.update(usual_quota(quota) for quota in amounts if quota.preemptible)
    limits = _limits(google, region, quotas)
    amounts = _in_project(amounts, limits)
    own, others = _used(machines or [], region, limits)
    for quota in sorted(amounts):
        limit = limits[quota]
        if isinstance(limit, GoogleError):
            yield QUOTA.unchecked(
                f"{_name_and_place(quota, region)}: not checked: {limit.problem}", limit.remedy
            )
            continue
        elsewhere = others[quota] if limit.used is None else max(limit.used - own[quota], 0)
        yield _compare(google.project, region, quota, limit.limit, amounts[quota], elsewhere)


def _compare(
    project: str,
    region: str,
    quota: Quota,
    limit: int | None,
    amount_of_pool: dict[str, int],
    elsewhere: int,
) -> DoctorFinding:
    """Compare a limit with what pools take at most, and what others take now."""
    pools = list(amount_of_pool)
    amount = sum(amount_of_pool.values())
    who = f"pool {pools[0]} takes" if len(pools) == 1 else f"pools {', '.join(pools)} take"
    asked = f"{_name_and_place(quota, region)}: {who} up to {amount}"
    if elsewhere:
        asked += f", others use {elsewhere}"
    if limit is None:
        return QUOTA.fine(f"{asked}; there is no limit")
    needed = amount + elsewhere
    if needed <= limit:
        return QUOTA.fine(f"{asked}; the limit is {limit}")
    pairs = ",".join(f"{key}={value}" for key, value in quota.dimensions(region).items())
    dimensions = f" --dimensions={pairs}" if pairs else ""
    return QUOTA.missing(
        f"{asked}, but the limit is {limit}",
        f"gcloud beta quotas preferences create --project={project}"
        f" --service=compute.googleapis.com --quota-id={quota.id}{dimensions}"
        f' --preferred-value={needed} --email="$(gcloud config get account)"',
    )


def _name_and_place(quota: Quota, region: str) -> str:
    return f"{quota} in {'all regions' if quota.everywhere else region}"


def _quota_in_project(quota: Quota, limits: Limits) -> Quota:
    """Return the quota that counts: the usual one if the project has no preemptible one."""
    limit = limits.get(quota)
    if quota.preemptible and isinstance(limit, Limit) and limit.limit == 0:
        return usual_quota(quota)
    return quota


def _in_project(
    amounts: dict[Quota, dict[str, int]], limits: Limits
) -> dict[Quota, dict[str, int]]:
    """Return the amounts of the quotas that count in the project."""
    counted: dict[Quota, dict[str, int]] = {}
    # The usual quotas come first, and with them the pools that take these in any project.
    for quota in sorted(amounts, key=lambda quota: _quota_in_project(quota, limits) != quota):
        of_pools = counted.setdefault(_quota_in_project(quota, limits), {})
        for pool, amount in amounts[quota].items():
            of_pools[pool] = of_pools.get(pool, 0) + amount
    return counted


def _used(
    machines: Iterable[RunningMachine], region: str, limits: Limits
) -> tuple[Counter[Quota], Counter[Quota]]:
    """Return the quotas that the environment's own machines take, and those of all others."""
    own = Counter[Quota]()
    others = Counter[Quota]()
    for machine in machines:
        amounts = own if machine.pool else others
        here = region_of(machine.zone) == region
        for quota, amount in quotas_taken(machine.machine, machine.capacity).items():
            if here or quota.everywhere:
                amounts[_quota_in_project(quota, limits)] += amount
    return own, others


def _limits(google: GoogleClient, region: str, quotas: set[Quota]) -> Limits:
    """Return limits: of newer GPUs from the Cloud Quotas API, others with their use from Compute.

    Raises:
        GoogleError: Compute Engine cannot be asked.
    """
    project = f"projects/{google.project}"
    in_region = _listed(google.get("compute", f"{project}/regions/{region}", fields="quotas"))
    everywhere = _listed(google.get("compute", project, fields="quotas"))
    limits: Limits = {}
    for quota in sorted(quotas):
        listed = (everywhere if quota.everywhere else in_region).get(quota.metric)
        if listed is None or quota.family:
            limits[quota] = _from_cloud_quotas(google, region, quota)
        else:
            limits[quota] = listed
    return limits


def _listed(answer: dict[str, Any]) -> dict[str, Limit]:
    return {
        str(entry["metric"]): Limit(_number(entry.get("limit", 0)), int(entry.get("usage", 0)))
        for entry in answer.get("quotas") or []
    }


def _from_cloud_quotas(google: GoogleClient, region: str, quota: Quota) -> Limit | GoogleError:
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
    limit: int | None = 0
    most_named = -1
    for entry in info.get("dimensionsInfos") or []:
        named = entry.get("dimensions") or {}
        places = entry.get("applicableLocations")
        if any(dimensions.get(key) != value for key, value in named.items()):
            continue
        if places and "region" in dimensions and not {dimensions["region"], "global"} & set(places):
            continue
        if len(named) > most_named:
            most_named = len(named)
            # A limit of 0 is left out of the answer.
            limit = _number((entry.get("details") or {}).get("value", 0))
    return limit


def _number(value: Any) -> int | None:
    number = int(value) if isinstance(value, str) else int(float(value))
    return None if number == _UNLIMITED or number >= _AS_GOOD_AS_UNLIMITED else number
