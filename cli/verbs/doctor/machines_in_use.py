"""The machines that run in a project now: the environment's own, and all others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from berth.cli.verbs.doctor.google import Google, last

# Labels that GKE gives to its nodes' machines
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/creating-managing-labels).
CLUSTER_LABEL, POOL_LABEL = "goog-k8s-cluster-name", "goog-k8s-node-pool-name"

_FIELDS = (
    "nextPageToken,items/*/instances(machineType,zone,labels,scheduling/provisioningModel,scheduling/preemptible,"
    "reservationAffinity/consumeReservationType)"
)
_PAGES = 40
_PAGE = 500


@dataclass(frozen=True)
class Running:
    """Running machine.

    Attributes:
        capacity: `on-demand`, `spot`, `flex-start` or `reservation`.
        pool: the node pool of this environment that it is of, "" for all others.
    """

    machine_type: str
    zone: str
    capacity: str
    pool: str


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


def in_pool(machines: list[Running], pool: str) -> Counter[str]:
    """The environment's own machines of a pool, by zone."""
    return Counter(machine.zone for machine in machines if machine.pool == pool)


def _read(instance: dict[str, Any], cluster: str) -> Running:
    labels = instance.get("labels") or {}
    return Running(
        machine_type=last(instance.get("machineType")),
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
