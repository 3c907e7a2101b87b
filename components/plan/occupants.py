"""Occupants of node pools: RayClusters, with the GPUs that their pods take on each pool. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.components.cluster.demand import claimed_gpus_of, gpus_of_pod
from berth.components.cluster.object_fields import labels_of
from berth.components.cluster.ray_manifest import (
    head_group,
    is_suspended,
    pool_of,
    replicas_of,
    worker_groups,
)
from berth.components.core.owner import OWNER_LABELS, STACK_LABEL


@dataclass(frozen=True)
class Usage:
    """Usage of one pool by a RayCluster: pods, and their GPUs, or known shares of GPUs."""

    pods: int = 0
    gpus: int = 0
    shares: bool = False


@dataclass(frozen=True)
class Occupant:
    """RayCluster with pods on pools."""

    name: str
    """Name of the owner, or of a RayCluster that berth did not create."""
    kind: str
    """`berth`, `cluster`, `job`, `service` or `RayCluster`."""
    namespace: str
    ray_cluster: str
    stack: str
    """Stack that registers the RayCluster; empty for none of berth's."""
    on: Mapping[str, Usage]
    """Usage by the pool's name."""
    workers: Mapping[str, int] = field(default_factory=dict)
    """Number of workers by the group's name."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the RayCluster."""
        return self.namespace, self.ray_cluster

    def has_pods_on(self, pools: set[str]) -> bool:
        """Return whether a pod of the RayCluster is on one of some pools."""
        return any(usage.pods for pool, usage in self.on.items() if pool in pools)


def occupant_of(manifest: Mapping[str, Any]) -> Occupant:
    """Return the occupant that a RayCluster's manifest describes; its head counts as one pod."""
    metadata = manifest.get("metadata") or {}
    labels = labels_of(manifest)
    ray_cluster = str(metadata.get("name") or "")
    kind, name = _owner_of(labels) or ("RayCluster", ray_cluster)
    on: dict[str, Usage] = {}
    workers: dict[str, int] = {}
    if not is_suspended(manifest):
        on = _usage_by_pool(manifest, by_berth=kind != "RayCluster")
        for group in worker_groups(manifest):
            workers[str(group.get("groupName"))] = replicas_of(group)
    return Occupant(
        name=name,
        kind=kind,
        namespace=str(metadata.get("namespace") or ""),
        ray_cluster=ray_cluster,
        stack=str(labels.get(STACK_LABEL) or ""),
        on=on,
        workers=workers,
    )


def _owner_of(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the kind and name of the owner that labels name; None without one."""
    owner = None
    for kind, label in OWNER_LABELS.items():
        if label in labels:
            owner = ("berth" if kind == "engineer" else kind, str(labels[label]))
    return owner


def _usage_by_pool(manifest: Mapping[str, Any], *, by_berth: bool) -> dict[str, Usage]:
    """Return what the pods of a RayCluster's groups take on each pool.

    Berth gives Ray the number of GPUs only where they are shares or claimed (ray/manifest.py).
    """
    counts = [(1, head_group(manifest))]
    counts += [(replicas_of(group), group) for group in worker_groups(manifest)]
    on: dict[str, Usage] = {}
    for count, group in counts:
        template = group.get("template") or {}
        pool = pool_of(group)
        if not pool:
            continue
        told_to_ray = by_berth and "num-gpus" in (group.get("rayStartParams") or {})
        shares = told_to_ray and not claimed_gpus_of(template)
        before = on.get(pool, Usage())
        on[pool] = Usage(
            pods=before.pods + count,
            gpus=before.gpus + count * gpus_of_pod(template),
            shares=before.shares or shares,
        )
    return on
