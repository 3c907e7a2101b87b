"""Checks of zones: machine types, GPUs, and the network profile of RDMA networks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, last
from berth.stacks.settings.environment import EnvironmentSettings

TOPIC = Topic("machines")

_AT_ONCE = 6


def check(google: Google, settings: EnvironmentSettings) -> list[Finding]:
    """Check each pool's machine type and GPU in each of its zones, and the RDMA profile."""
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
    if found is None:
        return TOPIC.found("no-machine", zone=zone, machine=machine, project=google.project)
    counts = {
        last(entry.get("guestAcceleratorType")): entry.get("guestAcceleratorCount")
        for entry in found.get("accelerators") or []
    }
    for gpu in filter(None, counts):
        if google.exists("compute", f"{path}/acceleratorTypes/{gpu}", fields="name") is None:
            return TOPIC.found("no-gpu", zone=zone, machine=machine, gpu=gpu, project=google.project)
    gpus = ", ".join(f"{count} × {gpu}" for gpu, count in counts.items())
    return TOPIC.found("zone", zone=zone, machine=machine, gpus=f" ({gpus})" if gpus else "")


def _profile(google: Google, zone: str) -> Finding:
    name = f"{zone}-vpc-roce"
    if google.exists("compute", f"projects/{google.project}/global/networkProfiles/{name}", fields="name") is not None:
        return TOPIC.found("rdma", zone=zone, profile=name)
    return TOPIC.found("no-rdma", zone=zone, profile=name, project=google.project)
