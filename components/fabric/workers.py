"""Protocol of the facts about workers that the fabric needs; settings fulfill it."""

from __future__ import annotations

from typing import Protocol

from berth.components.fabric.settings import Nccl


class Worker(Protocol):
    """Worker of a group of equal ones: pool, memory, NICs, GPUs or shares of them, and NCCL."""

    @property
    def pool(self) -> str:
        """Name of the pool."""

    @property
    def memory(self) -> str:
        """Memory, as a Kubernetes quantity."""

    @property
    def gpus(self) -> int:
        """Number of GPUs."""

    @property
    def nics(self) -> int:
        """Number of RDMA NICs."""

    @property
    def nccl(self) -> Nccl:
        """NCCL's settings, complete."""
