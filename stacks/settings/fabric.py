"""What a worker has of the fabric where its settings don't say: NICs, and NCCL's profile."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from stacks.settings.pools import Pool
from stacks.settings.ray import Nccl, RayShape, WorkerShape
from stacks.settings.types import parse_quantity

_SHARED_MEMORY = Decimal(250 * 2**30)
"""Size of /dev/shm in bytes: Google's manifests for NCCL on A4 have 250Gi
(https://github.com/GoogleCloudPlatform/container-engine-accelerators, gpudirect-rdma/nccl-test-a4.yaml)."""

ResourceApi = Literal["v1", "v1beta2", "v1beta1"]
"""Versions of the API group resource.k8s.io in which claims can be made, the newest first."""

Profile = Literal["a4", "a3-ultra", "single-node", "none"]

_BY_MACHINE: dict[str, Profile] = {"a4-highgpu-8g": "a4", "a3-ultragpu-8g": "a3-ultra"}


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
    shared = given.shared_memory or (f"{int(min(_SHARED_MEMORY, memory / 4) // 2**20)}Mi" if nics else None)
    return Nccl(
        profile=_profile(shape, pool, nics) if given.profile in (None, "auto") else given.profile,
        env=given.env or {},
        library_path=given.library_path,
        shared_memory=shared,
        min_bus_bandwidth=given.min_bus_bandwidth,
    )


def _profile(shape: RayShape, pool: Pool, nics: int) -> Profile:
    if not shape.worker.gpus or not pool.settings.machine.rdma:
        return "none"
    return _BY_MACHINE[pool.settings.machine_type] if nics else "single-node"
