"""Checks of zones: machine types, GPUs, and the network profile of RDMA networks."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google
from berth.stacks.settings.environment import EnvironmentSettings

TOPIC = Topic("machines")

_AT_ONCE = 6


def check(google: Google, settings: EnvironmentSettings) -> list[Finding]:
    """Check each pool's machine type and GPU in each of its zones, and the RDMA profile.

    Raises:
        GoogleError: they can't be asked about.
    """
    pairs = dict.fromkeys(
        (pool.machine_type, zone) for pool in settings.pools.values() for zone in settings.zones_of(pool)
    )
    profiles = dict.fromkeys(
        zone for pool in settings.pools.values() if pool.rdma == "networks" for zone in settings.zones_of(pool)
    )
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        machines = pool.map(lambda pair: _machine(google, *pair), pairs)
        networks = pool.map(lambda zone: _profile(google, zone), profiles)
        return [*machines, *networks]


def _machine(google: Google, machine: str, zone: str) -> Finding:
    path = f"projects/{google.project}/zones/{zone}"
    found = google.exists("compute", f"{path}/machineTypes/{machine}", fields="name,accelerators")
    listing = (
        f'gcloud compute machine-types list --project={google.project} --filter="name={machine}" --format="value(zone)"'
    )
    if found is None:
        return TOPIC.missing(f"zone {zone} has no {machine}; the command lists the zones that have it", listing)
    for entry in found.get("accelerators") or []:
        gpu = str(entry.get("guestAcceleratorType", "")).rsplit("/", 1)[-1]
        if gpu and google.exists("compute", f"{path}/acceleratorTypes/{gpu}", fields="name") is None:
            return TOPIC.missing(f"zone {zone} has {machine}, but offers this project no {gpu}", listing)
    gpus = _gpus(found.get("accelerators") or [])
    return TOPIC.fine(f"{zone} has {machine}{gpus}")


def _gpus(accelerators: Iterable[dict[str, object]]) -> str:
    named = [
        f"{entry.get('guestAcceleratorCount')} × {str(entry.get('guestAcceleratorType', '')).rsplit('/', 1)[-1]}"
        for entry in accelerators
    ]
    return f" ({', '.join(named)})" if named else ""


def _profile(google: Google, zone: str) -> Finding:
    name = f"{zone}-vpc-roce"
    if google.exists("compute", f"projects/{google.project}/global/networkProfiles/{name}", fields="name") is not None:
        return TOPIC.fine(f"{zone} has RDMA networks (network profile {name})")
    return TOPIC.missing(
        f"zone {zone} has no RDMA networks: there is no network profile {name}; the command lists the zones that have"
        " one",
        f'gcloud compute network-profiles list --project={google.project} --filter="name~vpc-roce"',
    )
