"""Devices of claims as amounts, so that the autoscaler can count them beside cores and memory: pure.

The cluster autoscaler allocates claims for nodes that are not there as the scheduler would; counting is enough for what berth
claims: whole nodes, and pairs of a GPU and the NIC of its PCIe root, of which every node has as many of one as of the other.

Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b, pkg/docs/dra_support.md ("Node provisioning"):
    https://github.com/kubernetes-sigs/cluster-autoscaler/blob/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg/docs/dra_support.md
Answers to (believed): GKE's autoscaler knows by the label cloud.google.com/gke-nvidia-gpu-dra-driver which GPUs a node without
    any ResourceSlice will publish, as "Prepare GKE infrastructure for DRA workloads" has pools labelled; the public source has
    another label, and no slices. A pool of claimed GPUs that grows from zero nodes on GKE would settle it:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berth.lab.devices import gpu_devices, network_devices
from berth.lab.devices.gke_device_plugin import gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Object = dict[str, Any]
Claims = dict[tuple[str, str], Object]

NICS, GPUS = network_devices.DRIVER, gpu_devices.DRIVER
KINDS = (NICS, GPUS)

CLAIMED = "cloud.google.com/gke-nvidia-gpu-dra-driver"
"""Node label by which GKE's autoscaler knows that a node's GPUs are claimed ("Set up dynamic resource allocation in GKE")."""

_CLASSES = {"dranet": NICS, "mrdma.google.com": NICS, "gpu.nvidia.com": GPUS}


def by_name(claims: Iterable[Object]) -> Claims:
    """Claims by namespace and name."""
    return {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in claims}


def with_devices(pod: Object, claims: Claims) -> Object:
    """A pod that asks for its claims' devices as for any other resource; of unknown classes no node has any."""
    names = {each["name"]: each.get("resourceClaimName") for each in _statuses(pod)}
    total: dict[str, int] = {}
    for entry in pod["spec"].get("resourceClaims") or []:
        name = entry.get("resourceClaimName") or names.get(entry["name"]) or ""
        claim = claims.get((pod["metadata"]["namespace"], name)) or {"spec": {}}
        for request in (claim["spec"].get("devices") or {}).get("requests") or []:
            exactly = request.get("exactly") or {}
            kind = _CLASSES.get(exactly.get("deviceClassName", ""), str(exactly.get("deviceClassName")))
            total[kind] = total.get(kind, 0) + int(exactly.get("count") or 1)
    if not total:
        return pod
    overhead = {**(pod["spec"].get("overhead") or {}), **{kind: str(count) for kind, count in total.items()}}
    return {**pod, "spec": {**pod["spec"], "overhead": overhead}}


def _statuses(pod: Object) -> list[Object]:
    return (pod.get("status") or {}).get("resourceClaimStatuses") or []


def published(slices: Iterable[Object]) -> dict[str, dict[str, int]]:
    """How many devices of each kind each node publishes."""
    found: dict[str, dict[str, int]] = {}
    for each in slices:
        spec = each["spec"]
        if spec["driver"] in KINDS:
            counted = [device for device in spec.get("devices") or [] if _counts(spec["driver"], device)]
            found.setdefault(spec.get("nodeName", ""), {})[spec["driver"]] = len(counted)
    return found


def _counts(driver: str, device: Object) -> bool:
    return driver != NICS or bool(device["attributes"]["dra.net/rdma"].get("bool"))


def by_claims(labels: Mapping[str, str]) -> bool:
    """Whether the autoscaler knows from a node's labels that pods claim its GPUs."""
    return labels.get(CLAIMED) == "true"


def of_labels(labels: Mapping[str, str]) -> dict[str, int]:
    """The devices that the autoscaler expects of a node that is not there yet: NVIDIA's GPUs by their label, and no NICs."""
    return {GPUS: gpus(labels)} if by_claims(labels) and gpus(labels) else {}
