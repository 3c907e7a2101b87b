"""Quotas: the largest demand of the settings plus the use of others, against the limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError
from berth.cli.verbs.doctor.machines_in_use import Running
from berth.components.core.types import region_of
from berth.components.hardware.quota_names import Quota, taken, usual
from berth.stacks.settings.environment import EnvironmentSettings

TOPIC = Topic("quota")

_AT_ONCE = 4
_UNLIMITED = -1
_AS_GOOD_AS_UNLIMITED = 2**62


@dataclass(frozen=True)
class Limit:
    """A limit, and what is used of it.

    Attributes:
        limit: None for none.
        used: None where Google does not tell.
    """

    limit: int | None
    used: int | None


Limits = dict[Quota, Limit | GoogleError]
"""Limit of each quota, or why it cannot be read."""


def needs(settings: EnvironmentSettings) -> tuple[Counter[Quota], dict[Quota, list[str]]]:
    """Return the most that the pools take, and the pools behind each quota."""
    amounts, pools = Counter[Quota](), dict[Quota, list[str]]()
    for name, pool in settings.pools.items():
        # Those that come with the machine type (A2 Ultra, A3, A4) come with its GPU quota.
        ssds = pool.local_ssds.count or 0 if pool.local_ssds and not pool.machine.local_ssds else 0
        for quota, amount in taken(pool.machine_type, pool.capacity.kind, ssds).items():
            if pool.nodes_at_most:
                amounts[quota] += amount * pool.nodes_at_most
                pools.setdefault(quota, []).append(name)
    return amounts, pools


def check(google: Google, settings: EnvironmentSettings, machines: Sequence[Running] | None) -> Iterable[Finding]:
    """Yield a finding for each quota of the pools, beside the machines that could be listed."""
    amounts, pools = needs(settings)
    if not amounts:
        yield TOPIC.found("none-needed")
        return
    region = settings.in_region
    limits = _limits(google, region, {*amounts, *(usual(quota) for quota in amounts if quota.preemptible)})
    _without_preemptible(limits, amounts, pools)
    own, others = _used(machines or [], region, limits)
    for quota in sorted(amounts):
        limit = limits[quota]
        if isinstance(limit, GoogleError):
            yield TOPIC.found("unknown", quota=_named(quota, region), reason=limit.problem, remedy=limit.remedy)
            continue
        elsewhere = max(limit.used - own[quota], 0) if limit.used is not None else others[quota]
        if limit.used is None and machines is None:
            elsewhere = 0
        yield _verdict(google.project, quota, region, amounts[quota], elsewhere, limit.limit, pools[quota])


def _verdict(
    project: str, quota: Quota, region: str, amount: int, elsewhere: int, limit: int | None, pools: Iterable[str]
) -> Finding:
    used = f", others use {elsewhere}" if elsewhere else ""
    names = list(pools)
    who = f"pool {names[0]} takes" if len(names) == 1 else f"pools {', '.join(names)} take"
    asked = f"{_named(quota, region)}: {who} up to {amount}{used}"
    if limit is None:
        return TOPIC.found("unlimited", asked=asked)
    if amount + elsewhere <= limit:
        return TOPIC.found("enough", asked=asked, limit=limit)
    pairs = ",".join(f"{key}={value}" for key, value in quota.dimensions(region).items())
    dimensions = f" --dimensions={pairs}" if pairs else ""
    ask = {"project": project, "id": quota.id, "dimensions": dimensions, "value": amount + elsewhere}
    return TOPIC.found("too-small", asked=asked, limit=limit, **ask)


def _named(quota: Quota, region: str) -> str:
    return f"{quota} in {'all regions' if quota.everywhere else region}"


def _without_preemptible(limits: Limits, amounts: Counter[Quota], pools: dict[Quota, list[str]]) -> None:
    """A project with no preemptible quota of a kind takes the usual one for Spot and flex-start."""
    for quota in [quota for quota in amounts if quota.preemptible]:
        limit = limits[quota]
        if isinstance(limit, Limit) and limit.limit == 0:
            other = usual(quota)
            amounts[other] += amounts.pop(quota)
            pools[other] = list(dict.fromkeys([*pools.get(other, []), *pools.pop(quota)]))


def _used(machines: Iterable[Running], region: str, limits: Limits) -> tuple[Counter[Quota], Counter[Quota]]:
    """Return the quotas that the environment's own machines take, and those of all others."""
    own, others = Counter[Quota](), Counter[Quota]()
    for machine in machines:
        here = region_of(machine.zone) == region
        for quota, amount in taken(machine.machine_type, machine.capacity).items():
            if not (here or quota.everywhere):
                continue
            limit = limits.get(quota)
            counted = usual(quota) if quota.preemptible and isinstance(limit, Limit) and limit.limit == 0 else quota
            (own if machine.pool else others)[counted] += amount
    return own, others


def _limits(google: Google, region: str, quotas: set[Quota]) -> Limits:
    """Limits with their use from Compute Engine; limits of newer GPUs from the Cloud Quotas API."""
    here = _listed(google.get("compute", f"projects/{google.project}/regions/{region}", fields="quotas"))
    everywhere = _listed(google.get("compute", f"projects/{google.project}", fields="quotas"))
    found: Limits = {}
    for quota in quotas:
        listed = (everywhere if quota.everywhere else here).get(quota.metric)
        if listed is not None and not quota.family:
            found[quota] = listed
    rest = sorted(quotas - found.keys())
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found |= dict(zip(rest, pool.map(lambda quota: _from_cloud_quotas(google, region, quota), rest), strict=True))
    return found


def _listed(answer: dict[str, Any]) -> dict[str, Limit]:
    return {
        str(entry["metric"]): Limit(_number(entry.get("limit", 0)), int(entry.get("usage", 0)))
        for entry in answer.get("quotas") or []
    }


def _from_cloud_quotas(google: Google, region: str, quota: Quota) -> Limit | GoogleError:
    path = f"projects/{google.project}/locations/global/services/compute.googleapis.com/quotaInfos/{quota.id}"
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
            best, (len(named), _number((entry.get("details") or {}).get("value", 0))), key=lambda entry: entry[0]
        )
    return best[1]


def _number(value: Any) -> int | None:
    number = int(float(value)) if not isinstance(value, str) else int(value)
    return None if number == _UNLIMITED or number >= _AS_GOOD_AS_UNLIMITED else number
