"""Compute Engine API, reading only (https://docs.cloud.google.com/compute/docs/reference/rest/v1).

Answers to (read): https://docs.cloud.google.com/compute/docs/reference/rest/v1 (shapes of projects,
    regions, machineTypes, acceleratorTypes, reservations, networkProfiles, instances).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from berth.components.hardware.machines import GPUS, MACHINES
from berth.lab.google_api.quotas import listed
from berth.lab.google_api.simulated import Answer, Simulated
from berth.lab.plugins.gcp import supply
from berth.lab.plugins.gcp.errors import not_found
from berth.lab.plugins.gcp.locations import REGIONS, ZONES
from berth.lab.plugins.gcp.nodes import expected
from berth.lab.plugins.gcp.pools import Pool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berth.lab.plugins.gcp.store import Record

_GLOBAL = "global"
_MODELS = {"spot": "SPOT", "flex-start": "FLEX_START", "on-demand": "STANDARD", "reservation": "RESERVATION_BOUND"}
_RESERVATION = re.compile(r"(?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)(?:/reservationBlocks/[^/]+)?")
_LINK = "https://www.googleapis.com/compute/v1/"


def project(simulated: Simulated, project: str) -> Answer:
    """Answer projects.get with the quotas of all regions (under `global` in the conditions)."""
    return {"name": project, "quotas": _quotas(simulated, project, _GLOBAL)}


def region(simulated: Simulated, project: str, region: str) -> Answer:
    """regions.get, with its quotas."""
    if region not in REGIONS:
        raise not_found(f"projects/{project}/regions/{region}")
    return {"name": region, "quotas": _quotas(simulated, project, region)}


def _quotas(simulated: Simulated, project: str, region: str) -> list[Answer]:
    entry = simulated.conditions.project(project)
    limits = entry.quotas.get(region, {}) if entry else {}
    used = Counter[str]()
    for pool in simulated.pools(project):
        for metric, amount in supply.metrics(Pool(pool.inputs)).items():
            here = [zone for zone, _ in expected(pool).values() if ZONES.get(zone) == region]
            used[metric] += amount * len(here)
    return [
        {"metric": metric, "limit": float(limit), "usage": float(used[metric])}
        for metric, limit in limits.items()
        if listed(metric)
    ]


def machine_type(simulated: Simulated, project: str, zone: str, name: str) -> Answer:
    """machineTypes.get: the lab has every machine type in every zone."""
    del simulated
    machine = MACHINES.get(name)
    if zone not in ZONES or machine is None:
        raise not_found(f"projects/{project}/zones/{zone}/machineTypes/{name}")
    accelerators = [{"guestAcceleratorType": machine.gpu.accelerator, "guestAcceleratorCount": machine.gpus}]
    return {"name": name, "guestCpus": machine.vcpus, **({"accelerators": accelerators} if machine.gpus else {})}


def accelerator_type(simulated: Simulated, project: str, zone: str, name: str) -> Answer:
    """acceleratorTypes.get."""
    del simulated
    if zone not in ZONES or name not in GPUS:
        raise not_found(f"projects/{project}/zones/{zone}/acceleratorTypes/{name}")
    return {"name": name}


def network_profile(simulated: Simulated, project: str, name: str) -> Answer:
    """networkProfiles.get: every zone has the one for RoCE, as the simulated networks take it."""
    del simulated
    if name.removesuffix("-vpc-roce") not in ZONES:
        raise not_found(f"projects/{project}/global/networkProfiles/{name}")
    return {"name": name}


def stored(simulated: Simulated, path: str) -> Answer:
    """networks.get and subnetworks.get: the inputs of what was made have the API's own names."""
    record = simulated.store.get(path)
    if record is None:
        raise not_found(path)
    return {**record.inputs, "name": record.name, "selfLink": _LINK + record.id}


def reservation(simulated: Simulated, project: str, zone: str, name: str) -> Answer:
    """reservations.get; numbers are text, as in Google's answers."""
    found = simulated.conditions.reservation(project, name)
    if found is None or found.zone != zone:
        raise not_found(f"projects/{project}/zones/{zone}/reservations/{name}")
    used = sum(
        1
        for pool in simulated.store.list("nodePools")
        if _takes(pool, project, name)
        for its_zone, _ in expected(pool).values()
        if its_zone == zone
    )
    return {
        "name": name,
        "zone": f"{_LINK}projects/{project}/zones/{zone}",
        "status": "READY",
        "specificReservationRequired": True,
        "specificReservation": {
            "count": str(found.count),
            "inUseCount": str(used),
            "instanceProperties": {"machineType": found.machine_type},
        },
    }


def reservation_block(simulated: Simulated, project: str, zone: str, name: str, block: str) -> Answer:
    """Answer reservationBlocks.get; the lab gives every block all machines of the reservation."""
    whole = reservation(simulated, project, zone, name)
    found = simulated.conditions.reservation(project, name)
    if found is None or block not in found.blocks:
        raise not_found(f"projects/{project}/zones/{zone}/reservations/{name}/reservationBlocks/{block}")
    counts = whole["specificReservation"]
    return {"resource": {"name": block, "count": int(counts["count"]), "inUseCount": int(counts["inUseCount"])}}


def _takes(pool: Record, project: str, name: str) -> bool:
    """A pool takes its machines from a reservation."""
    read = Pool(pool.inputs)
    if supply.capacity_of(read) != "reservation":
        return False
    for value in (read.config.get("reservationAffinity") or {}).get("values") or []:
        match = _RESERVATION.fullmatch(str(value))
        if match and (match["project"] or pool.project, match["name"]) == (project, name):
            return True
    return False


def instances(simulated: Simulated, project: str) -> Answer:
    """instances.aggregatedList: the nodes of every pool."""
    places: dict[str, Any] = {}
    for pool in simulated.pools(project):
        for entry in _instances(pool):
            place = "zones/" + entry["zone"].rsplit("/", 1)[-1]
            places.setdefault(place, {"instances": []})["instances"].append(entry)
    return {"items": places}


def _instances(pool: Record) -> Iterable[Answer]:
    read = Pool(pool.inputs)
    model = _MODELS[supply.capacity_of(read)]
    for name, (zone, _) in expected(pool).items():
        at = f"{_LINK}projects/{pool.project}/zones/{zone}"
        yield {
            "name": name,
            "zone": at,
            "machineType": f"{at}/machineTypes/{read.machine_name}",
            "labels": {"goog-k8s-cluster-name": pool.id.split("/")[5], "goog-k8s-node-pool-name": pool.name},
            "scheduling": {"provisioningModel": model, "preemptible": model == "SPOT"},
        }
