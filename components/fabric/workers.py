"""Facts about a RayCluster and its workers that the fabric needs, as protocols that RayCluster settings fulfil."""

from __future__ import annotations

from typing import Protocol

from berth.components.fabric.settings import Nccl


class Devices(Protocol):
    """Devices of one worker."""

    @property
    def gpus(self) -> int:
        """GPUs, shares of GPUs or MIG instances."""

    @property
    def nics(self) -> int:
        """RDMA NICs."""


class Worker(Devices, Protocol):
    """One worker on a pool."""

    @property
    def pool(self) -> str:
        """Name of the pool."""

    @property
    def memory(self) -> str:
        """Memory of the worker, as a Kubernetes quantity."""


class Cluster(Protocol):
    """A cluster of such workers."""

    @property
    def worker(self) -> Worker:
        """One worker; all are alike."""

    @property
    def nccl(self) -> Nccl:
        """NCCL's settings, complete."""
