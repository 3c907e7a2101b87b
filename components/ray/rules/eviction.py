"""Heads that GKE's cluster autoscaler may end to remove their nodes."""

from berth.components.core.bounds import Bounds
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.sharing import Pools

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation of a pod that says whether GKE's autoscaler may end it. Upgrades and drains of nodes
ignore it (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler)."""


def may_be_evicted(cluster: RayClusterSettings, pools: Pools) -> bool:
    """Return whether GKE's autoscaler may end a head to remove its node, and nobody allows it."""
    nodes = pools[cluster.head.pool].settings.nodes
    metadata = cluster.head.pod_template.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    scaled = isinstance(nodes, Bounds) and nodes.min < nodes.max
    return scaled and SAFE_TO_EVICT not in annotations
