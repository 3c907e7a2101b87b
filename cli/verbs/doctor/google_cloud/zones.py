"""Checks of zones: they have the pools' machine types, GPUs and RDMA networks."""

from typing import Any

from berth.cli.reach.google_cloud import GoogleClient, resource_name
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.gke import PoolSettings
from berth.stacks.settings.environment import EnvironmentSettings

MACHINES = Topic("machines")


def check_zones(google: GoogleClient, settings: EnvironmentSettings) -> list[DoctorFinding]:
    """Check each pool's machine type and GPU in each of its zones, and the RDMA profile.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    findings = []
    checked = set()
    for pool in settings.pools.values():
        attached = _attached_gpus(pool)
        for zone in settings.zones_of(pool):
            key = (pool.machine_type, zone, *attached.items())
            if key not in checked:
                findings.append(_check_machine(google, pool.machine_type, zone, attached))
            checked.add(key)
    findings += [_check_rdma(google, zone) for zone in settings.rdma_zones]
    return findings


def _attached_gpus(pool: PoolSettings) -> dict[str, int]:
    """Return the GPUs that a pool attaches to machines that come without any, by type."""
    return {pool.gpus.type: pool.machine.gpus} if pool.gpus and pool.gpus.type else {}


def _check_machine(
    google: GoogleClient, machine: str, zone: str, attached: dict[str, int]
) -> DoctorFinding:
    project = google.project
    list_zones = (
        f'gcloud compute machine-types list --project={project} --filter="name={machine}"'
        ' --format="value(zone)"'
    )
    path = f"projects/{project}/zones/{zone}"
    answer = google.exists("compute", f"{path}/machineTypes/{machine}", fields="name,accelerators")
    if answer is None:
        return MACHINES.missing(
            f"zone {zone} has no {machine}; the command lists the zones that have it", list_zones
        )
    counts = _gpus_of_type(answer) or attached
    for gpu in counts:
        if google.exists("compute", f"{path}/acceleratorTypes/{gpu}", fields="name") is None:
            return MACHINES.missing(
                f"zone {zone} has {machine}, but offers this project no {gpu}", list_zones
            )
    if not counts:
        return MACHINES.fine(f"{zone} has {machine}")
    gpus = ", ".join(f"{count} × {gpu}" for gpu, count in counts.items())
    return MACHINES.fine(f"{zone} has {machine} ({gpus})")


def _gpus_of_type(machine_type: dict[str, Any]) -> dict[str, int]:
    """Return the GPUs that a machine type comes with, by their type."""
    return {
        resource_name(entry["guestAcceleratorType"]): entry["guestAcceleratorCount"]
        for entry in machine_type.get("accelerators") or []
        if entry.get("guestAcceleratorType")
    }


def _check_rdma(google: GoogleClient, zone: str) -> DoctorFinding:
    project = google.project
    profile = f"{zone}-vpc-roce"
    path = f"projects/{project}/global/networkProfiles/{profile}"
    if google.exists("compute", path, fields="name") is None:
        return MACHINES.missing(
            f"zone {zone} has no RDMA networks: there is no network profile {profile}; the command"
            " lists the zones that have one",
            f'gcloud compute network-profiles list --project={project} --filter="name~vpc-roce"',
        )
    return MACHINES.fine(f"{zone} has RDMA networks (network profile {profile})")
