"""Machines that run in a project, as Compute Engine lists them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from berth.cli.reach.google_cloud import GoogleClient, resource_name
from berth.components.hardware.machines import Machine, machine_of

# Labels that GKE gives to its nodes' machines
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/creating-managing-labels).
_CLUSTER_LABEL = "goog-k8s-cluster-name"
_POOL_LABEL = "goog-k8s-node-pool-name"

_FIELDS = (
    "nextPageToken,items/*/instances(machineType,zone,labels,scheduling/provisioningModel,scheduling/preemptible,"
    "guestAccelerators,reservationAffinity/consumeReservationType)"
)
_PAGES = 40
_PAGE = 500


@dataclass(frozen=True)
class RunningMachine:
    """Running machine of a project.

    Attributes:
        machine: its machine type.
        zone: the zone in which it runs.
        capacity: `on-demand`, `spot`, `flex-start` or `reservation`.
        pool: the node pool of this environment that has it; empty for all others.
    """

    machine: Machine
    zone: str
    capacity: str
    pool: str


RunningMachines = Sequence[RunningMachine] | None
"""Machines that run in a project; None where they could not be listed."""


def running_machines(google: GoogleClient, cluster: str) -> list[RunningMachine]:
    """Return every machine of the project, with its pool in the environment's cluster.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    path = f"projects/{google.project}/aggregated/instances"
    query: dict[str, Any] = {"fields": _FIELDS, "maxResults": _PAGE, "returnPartialSuccess": "true"}
    machines: list[RunningMachine] = []
    for _ in range(_PAGES):
        answer = google.get("compute", path, **query)
        for place in (answer.get("items") or {}).values():
            machines += [_machine(entry, cluster) for entry in place.get("instances") or []]
        if not answer.get("nextPageToken"):
            break
        query["pageToken"] = answer["nextPageToken"]
    return machines


def _machine(instance: dict[str, Any], cluster: str) -> RunningMachine:
    labels = instance.get("labels") or {}
    accelerators = instance.get("guestAccelerators") or [{}]
    gpu = resource_name(accelerators[0].get("acceleratorType"))
    gpus = int(accelerators[0].get("acceleratorCount") or 0)
    in_cluster = labels.get(_CLUSTER_LABEL) == cluster
    return RunningMachine(
        machine=machine_of(resource_name(instance.get("machineType")), gpu, gpus),
        zone=resource_name(instance.get("zone")),
        capacity=_capacity(instance),
        pool=str(labels.get(_POOL_LABEL, "")) if in_cluster else "",
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
