"""Node templates of the cluster autoscaler: the node that it expects to add to a pool in a zone.

Like the real one, the lab copies a ready node of the group where there is one and remembers it. For
a group that never had a node, it builds one from the machine: cores, memory, and nvidia.com/gpu for
each accelerator. A node with an accelerator label and no nvidia.com/gpu counts as unready, whatever
else it advertises, and is never copied. Claimed devices count as amounts beside cores and memory:
berth claims whole nodes, and pairs of a GPU and its NIC, of which every node has equally
many.

GKE's own autoscaler is not public: the lab's decides as the two public ones do. It knows GPUs that
pods claim by the label that Google's page has pools labeled with.

Answers to (read): kubernetes/autoscaler at 55c37cd5,
    cluster-autoscaler/cloudprovider/gce/templates.go (BuildCapacity) and gce_cloud_provider.go
    (TemplateNodeInfo, which has no ResourceSlices):
    https://github.com/kubernetes/autoscaler/tree/55c37cd5eb550756c5ccc5a89e9068d77797e575/cluster-autoscaler/cloudprovider/gce
Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b, pkg/processors/customresources
    (gpu_processor.go, dra_processor.go),
    pkg/processors/nodeinfosprovider/mixed_nodeinfos_processor.go (Process),
    pkg/clusterstate/clusterstate.go (IsClusterHealthy) and pkg/docs/dra_support.md ("Node
    provisioning"):
    https://github.com/kubernetes-sigs/cluster-autoscaler/tree/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from berth.components.cluster.api import Object
from berth.components.cluster.inventory import Claim, inventory
from berth.components.hardware import names
from berth.components.hardware.names import ACCELERATOR_LABEL, CLAIMED_LABEL, GPU_RESOURCE, POOL_LABEL
from berth.lab.devices.gpus import gpu_count
from berth.lab.plugins.gcp.nodes import manifest, sizes_of
from berth.lab.plugins.gcp.store import Record

Published = Mapping[str, Mapping[str, int]]
"""Devices of each driver in the ResourceSlices of a node, by the node's name."""

NICS, GPUS = names.DRANET_DRIVER, names.GPU
DRIVERS = (NICS, GPUS)

_CLASSES = {names.DRANET: NICS, names.MANAGED_RDMA: NICS, names.GPU: GPUS}
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

# MaxNodeStartupTime (pkg/clusterstate/clusterstate.go), and the defaults of ok-total-unready-count
# and max-total-unready-percentage (pkg/config/flags/flags.go).
_STARTUP = timedelta(minutes=15)
_UNREADY_NODES, _UNREADY_PERCENT = 3, 45


@dataclass(frozen=True)
class Template:
    """Node that an instance group would add."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, Any]  # resources of the node for pods, devices to claim among them
    devices: Mapping[str, int]  # devices to claim by driver, which a node of the group publishes once it is ready


def with_claims(pods: Iterable[Object], claims: Iterable[Object]) -> list[Object]:
    """Pods that ask for their claims' devices as for any other resource."""
    known = {(claim.namespace, claim.name): claim for claim in inventory((), claims, (), ()).claims}
    return [_with_claims(pod, known) for pod in pods]


def _with_claims(pod: Object, claims: Mapping[tuple[str, str], Claim]) -> Object:
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or []
    generated = {status["name"]: status.get("resourceClaimName") for status in statuses}
    devices: Counter[str] = Counter()
    for entry in pod["spec"].get("resourceClaims") or []:
        name = entry.get("resourceClaimName") or generated.get(entry["name"]) or ""
        claim = claims.get((pod["metadata"]["namespace"], name))
        for request in claim.requests if claim is not None else ():
            # No node has devices of a class that is unknown here.
            devices[_CLASSES.get(request.device_class, request.device_class)] += request.count or 1
    if not devices:
        return pod
    return {**pod, "spec": {**pod["spec"], "overhead": {**(pod["spec"].get("overhead") or {}), **devices}}}


def published(slices: Iterable[Object]) -> Published:
    """Return the number of GPUs and RDMA NICs that each node publishes, by driver."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for device in inventory(slices, (), (), ()).devices:
        found[device.node][device.driver] += device.is_nic or device.is_gpu
    return found


def from_machine(pool: Record, zone: str) -> Template:
    """Build a node of a group that never had one from the pool's machine type and labels."""
    node = manifest(pool, zone, 0, "")
    labels = node["metadata"]["labels"]
    count = gpu_count(labels)
    devices = {GPUS: count} if count and _claimed(labels) else {}
    advertised = {GPU_RESOURCE: count} if count and not _claimed(labels) else {}
    return Template(labels, {**node["status"]["allocatable"], **advertised, **devices}, devices)


def without_gpu(node: Object) -> bool:
    """Whether a node is unready for want of nvidia.com/gpu (gpu_processor.go)."""
    labels = _labels(node)
    return ACCELERATOR_LABEL in labels and not _claimed(labels) and int(_allocatable(node).get(GPU_RESOURCE) or 0) == 0


def stopped(nodes: Iterable[Object], now: datetime) -> bool:
    """Whether so many nodes are unready that the autoscaler stops (IsClusterHealthy)."""
    known = list(nodes)
    unready = sum(1 for node in known if without_gpu(node) and _started(node, now))
    return unready > _UNREADY_NODES and unready * 100 > _UNREADY_PERCENT * len(known)


def _started(node: Object, now: datetime) -> bool:
    created = node["metadata"].get("creationTimestamp")
    return created is not None and datetime.fromisoformat(created) + _STARTUP <= now


class Templates:
    """Templates of all instance groups, from the last ready node of each."""

    def __init__(self) -> None:
        self._remembered: dict[tuple[str, str], Template] = {}

    def look(self, pools: Iterable[Record], nodes: Iterable[Object], devices: Published) -> None:
        """Take note of all nodes of all pools; groups that are gone are forgotten."""
        groups = {(pool.name, zone): pool for pool in pools for zone in sizes_of(pool)}
        ids = {(pool.id, zone) for (_, zone), pool in groups.items()}
        self._remembered = {key: template for key, template in self._remembered.items() if key in ids}
        copied = set()
        for node in nodes:
            zone = _labels(node).get(_ZONE, "")
            pool = groups.get((_labels(node).get(POOL_LABEL, ""), zone))
            if pool is None or (pool.id, zone) in copied or node["spec"].get("unschedulable"):
                continue
            if not self._ready(node, self.of(pool, zone), devices):
                continue
            copied.add((pool.id, zone))
            own = devices.get(node["metadata"]["name"], {})
            labels = {key: value for key, value in _labels(node).items() if key != _HOST}
            self._remembered[pool.id, zone] = Template(labels, {**_allocatable(node), **own}, own)

    def of(self, pool: Record, zone: str) -> Template:
        """Return the template of one more node of a pool in a zone."""
        return self._remembered.get((pool.id, zone)) or from_machine(pool, zone)

    def expected(self, node: Object, pool: Record | None, devices: Published) -> Object:
        """Return a node as pods will find it; before it is ready, as its group's template."""
        allocatable = {**_allocatable(node), **devices.get(node["metadata"]["name"], {})}
        if pool is not None:
            template = self.of(pool, _labels(node).get(_ZONE, ""))
            if not self._ready(node, template, devices):
                allocatable = {**template.allocatable, **allocatable, **_missing(template, allocatable)}
        return {**node, "status": {**(node.get("status") or {}), "allocatable": allocatable}}

    @staticmethod
    def _ready(node: Object, template: Template, devices: Published) -> bool:
        own = devices.get(node["metadata"]["name"], {})
        return not without_gpu(node) and all(own.get(driver) for driver in template.devices)


def _missing(template: Template, allocatable: Mapping[str, Any]) -> dict[str, Any]:
    """Devices of a template that a node on its way does not show yet, or shows as none."""
    kinds = {GPU_RESOURCE, *template.devices} & template.allocatable.keys()
    return {kind: template.allocatable[kind] for kind in kinds if int(allocatable.get(kind) or 0) == 0}


def _claimed(labels: Mapping[str, str]) -> bool:
    """Whether the autoscaler knows from a node's labels that pods claim its GPUs."""
    return labels.get(CLAIMED_LABEL) == "true"


def _labels(node: Object) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _allocatable(node: Object) -> dict[str, Any]:
    return (node.get("status") or {}).get("allocatable") or {}
