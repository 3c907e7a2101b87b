"""Node templates of the cluster autoscaler: the node that it expects to add to an instance group, a pool in a zone.

Like the real one it copies a ready node of the group where there is one, remembers it while it runs, and without any builds
the node from the machine: cores, memory, and nvidia.com/gpu for each accelerator. A node with an accelerator label and no
nvidia.com/gpu counts as unready, whatever else it advertises, and is never copied.

Answers to (read): kubernetes/autoscaler at 55c37cd5, cluster-autoscaler/cloudprovider/gce/templates.go (BuildCapacity) and
    gce_cloud_provider.go (TemplateNodeInfo, which has no ResourceSlices):
    https://github.com/kubernetes/autoscaler/tree/55c37cd5eb550756c5ccc5a89e9068d77797e575/cluster-autoscaler/cloudprovider/gce
Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b, pkg/processors/customresources (gpu_processor.go,
    dra_processor.go), pkg/processors/nodeinfosprovider/mixed_nodeinfos_processor.go (Process) and
    pkg/clusterstate/clusterstate.go (IsClusterHealthy):
    https://github.com/kubernetes-sigs/cluster-autoscaler/tree/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg
Answers to (believed): GKE's own autoscaler, which is not public, decides as these two do, and has no ResourceSlices of managed
    DRANET for a node that is not there yet. A pool that grows from zero nodes on GKE would settle it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from berth.components.hardware.names import POOL_LABEL
from berth.lab.devices import claimed
from berth.lab.devices.advertised import GPU
from berth.lab.devices.gke_device_plugin import ACCELERATOR, gpus
from berth.lab.plugins.gcp.nodes import manifest, sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from berth.lab.plugins.gcp.store import Record

Object = dict[str, Any]
Published = dict[str, dict[str, int]]
"""Devices of each driver in the ResourceSlices of a node, by the node's name."""

_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

# MaxNodeStartupTime (pkg/clusterstate/clusterstate.go), and the defaults of ok-total-unready-count and
# max-total-unready-percentage (pkg/config/flags/flags.go).
_STARTUP = timedelta(minutes=15)
_UNREADY_NODES, _UNREADY_PERCENT = 3, 45


@dataclass(frozen=True)
class Template:
    """A further node of an instance group.

    Attributes:
        labels: labels of the node.
        allocatable: resources of the node for pods, devices to claim among them.
        devices: devices to claim by driver, which a node of the group publishes once it is ready.
    """

    labels: Mapping[str, str]
    allocatable: Mapping[str, Any]
    devices: Mapping[str, int]


def from_machine(pool: Record, zone: str) -> Template:
    """A node of a group that never had one, built from its machine type and the pool's labels."""
    node = manifest(pool, zone, 0, "")
    labels = node["metadata"]["labels"]
    devices = claimed.of_labels(labels)
    counted = {} if claimed.by_claims(labels) or not gpus(labels) else {GPU: gpus(labels)}
    return Template(labels, {**node["status"]["allocatable"], **counted, **devices}, devices)


def without_gpu(node: Object) -> bool:
    """Whether a node counts as unready for want of nvidia.com/gpu (gpu_processor.go, FilterOutNodesWithUnreadyResources)."""
    labels = _labels(node)
    return ACCELERATOR in labels and not claimed.by_claims(labels) and int(_allocatable(node).get(GPU) or 0) == 0


def stopped(nodes: Iterable[Object], now: datetime) -> bool:
    """Whether so many nodes are unready that the autoscaler does nothing at all (clusterstate.go, IsClusterHealthy)."""
    there = list(nodes)
    unready = sum(1 for node in there if without_gpu(node) and _started(node, now))
    return unready > _UNREADY_NODES and unready * 100 > _UNREADY_PERCENT * len(there)


def _started(node: Object, now: datetime) -> bool:
    created = node["metadata"].get("creationTimestamp")
    return created is not None and datetime.fromisoformat(created) + _STARTUP <= now


class Templates:
    """The templates of all instance groups; remembers the last ready node of each."""

    def __init__(self) -> None:
        self._remembered: dict[tuple[str, str], Template] = {}

    def look(self, pools: Iterable[Record], nodes: Iterable[Object], published: Published) -> None:
        """Take note of the nodes that are there.

        Args:
            pools: all pools.
            nodes: all nodes.
            published: devices to claim of each node.
        """
        groups = {(pool.name, zone): pool for pool in pools for zone in sizes_of(pool)}
        ids = {(pool.id, zone) for (_, zone), pool in groups.items()}
        self._remembered = {key: template for key, template in self._remembered.items() if key in ids}
        copied = set()
        for node in nodes:
            zone = _labels(node).get(_ZONE, "")
            pool = groups.get((_labels(node).get(POOL_LABEL, ""), zone))
            if pool is None or (pool.id, zone) in copied or node["spec"].get("unschedulable"):
                continue
            if not self._ready(node, self.of(pool, zone), published):
                continue
            copied.add((pool.id, zone))
            devices = published.get(node["metadata"]["name"], {})
            labels = {key: value for key, value in _labels(node).items() if key != _HOST}
            self._remembered[pool.id, zone] = Template(labels, {**_allocatable(node), **devices}, devices)

    def of(self, pool: Record, zone: str) -> Template:
        """Template of one more node of a pool in a zone."""
        return self._remembered.get((pool.id, zone)) or from_machine(pool, zone)

    def expected(self, node: Object, pool: Record | None, published: Published) -> Object:
        """A node as pods will find it: one that is still on its way counts as its group's template."""
        devices = published.get(node["metadata"]["name"], {})
        allocatable = {**_allocatable(node), **devices}
        if pool is not None:
            template = self.of(pool, _labels(node).get(_ZONE, ""))
            if not self._ready(node, template, published):
                allocatable = {**template.allocatable, **allocatable, **_missing(template, allocatable)}
        return {**node, "status": {**(node.get("status") or {}), "allocatable": allocatable}}

    @staticmethod
    def _ready(node: Object, template: Template, published: Published) -> bool:
        there = published.get(node["metadata"]["name"], {})
        return not without_gpu(node) and all(there.get(driver) for driver in template.devices)


def _missing(template: Template, allocatable: Mapping[str, Any]) -> dict[str, Any]:
    """Devices of a template that a node on its way does not show yet, or shows as none."""
    kinds = {GPU, *template.devices} & template.allocatable.keys()
    return {kind: template.allocatable[kind] for kind in kinds if int(allocatable.get(kind) or 0) == 0}


def _labels(node: Object) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _allocatable(node: Object) -> dict[str, Any]:
    return (node.get("status") or {}).get("allocatable") or {}
