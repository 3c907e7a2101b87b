"""What a worker has of the fabric where its settings don't say: NICs, and NCCL's profile."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from berth.components.core.types import parse_quantity
from berth.components.ray.settings import Nccl, RayShape, WorkerShape
from berth.components.sharing.pools import Pool

_MIB, _GIB = 2**20, 2**30

_SHARED_MEMORY = Decimal(250 * _GIB)
"""Size of /dev/shm in bytes: Google's manifests for NCCL on A4 have 250Gi
(https://github.com/GoogleCloudPlatform/container-engine-accelerators, gpudirect-rdma/nccl-test-a4.yaml)."""

ResourceApi = Literal["v1", "v1beta2", "v1beta1"]
"""Versions of the API group resource.k8s.io in which claims can be made, the newest first."""


def nics_of(worker: WorkerShape, pool: Pool) -> int:
    """RDMA NICs of one worker: as it says, one for each claimed GPU, or all of a node with all its GPUs."""
    if worker.nics is not None:
        return worker.nics
    if pool.settings.by_dra:
        return min(worker.gpus or 0, pool.settings.nics)
    whole = worker.gpus is not None and worker.gpus == pool.per_node > 0
    return pool.settings.nics if whole and not pool.shared else 0


def nccl_of(shape: RayShape, pool: Pool) -> Nccl:
    """NCCL's settings of one worker, complete.

    Args:
        shape: the RayCluster with all defaults.
        pool: the pool of its workers.
    """
    nics = nics_of(shape.worker, pool)
    given = shape.nccl
    memory = parse_quantity(shape.worker.memory or "0")
    return Nccl(
        profile=_profile(shape, pool, nics) if given.profile in (None, "auto") else given.profile,
        env=given.env or {},
        library_path=given.library_path,
        shared_memory=given.shared_memory or (_binary(min(_SHARED_MEMORY, memory / 4)) if nics else None),
        min_bus_bandwidth=given.min_bus_bandwidth,
    )


def _profile(shape: RayShape, pool: Pool, nics: int) -> str:
    """Only nodes of pools with RDMA have gIB, so only there does NCCL have to be told to use it, or to leave it alone."""
    if not shape.worker.gpus or not pool.settings.nics:
        return "none"
    tuned = pool.settings.machine.series.nccl
    return (tuned.name if tuned else "none") if nics else "single-node"


def _binary(amount: Decimal) -> str:
    """Bytes as a Kubernetes quantity, in whole GiB where they are."""
    return f"{int(amount) // _GIB}Gi" if amount % _GIB == 0 else f"{int(amount) // _MIB}Mi"
