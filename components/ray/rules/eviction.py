"""Pods that GKE's cluster autoscaler may end to remove their nodes.

The open-source autoscaler removes a node whose pods ask for less than half of it for ten minutes,
if they fit on other nodes; of a node with GPUs, only the GPUs count (kubernetes/autoscaler,
cluster-autoscaler/simulator/utilization/info.go; FAQ.md, "How does scale-down work?"). Maintenance
windows do not hold it up. By its default `--skip-nodes-with-custom-controller-pods=true`, it never
removes a node with pods of a RayCluster (simulator/drainability/rules/replicated/rule.go). Which
value GKE's own autoscaler has is not public, so that these pods may go, and may keep their node.
"""

from collections.abc import Mapping
from typing import Any

from berth.components.core.bounds import Bounds
from berth.components.ray.complete_settings import Head, RayClusterSettings, WorkerGroup
from berth.components.ray.demand import request_of, room_on_a_node
from berth.components.sharing import Pool, Pools

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation of a pod that says whether GKE's autoscaler may end it. Upgrades and drains of nodes
ignore it (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler)."""

_HALF = 2
"""Divisor of a node's resources, below whose quotient a node counts as hardly used."""


def head_may_be_evicted(cluster: RayClusterSettings, pools: Pools) -> bool:
    """Return whether the autoscaler may end the head to remove its node, and nothing decides."""
    return _may_be_evicted(cluster.head, cluster, pools)


def workers_may_be_evicted(cluster: RayClusterSettings, pools: Pools) -> bool:
    """Return whether the autoscaler may end workers to remove their node, and nothing decides."""
    groups = [group for group in cluster.groups if group.at_most]
    return any(_may_be_evicted(group, cluster, pools) for group in groups)


def _may_be_evicted(pod: Head | WorkerGroup, cluster: RayClusterSettings, pools: Pools) -> bool:
    pool = pools[pod.pool]
    nodes = pool.settings.nodes
    shrinks = isinstance(nodes, Bounds) and nodes.min < nodes.max
    is_decided = SAFE_TO_EVICT in _annotations(pod.pod_template)
    return shrinks and not is_decided and _takes_less_than_half(pod, cluster, pool)


def _takes_less_than_half(pod: Head | WorkerGroup, cluster: RayClusterSettings, pool: Pool) -> bool:
    """Return whether a pod alone asks for less than half of its node."""
    if pool.per_node:
        return pod.gpus * _HALF < pool.per_node
    request = request_of(pod, cluster)
    room = room_on_a_node(pool)
    return request.cores * _HALF < room.cores and request.memory * _HALF < room.memory


def _annotations(pod_template: Mapping[str, Any]) -> Mapping[str, Any]:
    return (pod_template.get("metadata") or {}).get("annotations") or {}
