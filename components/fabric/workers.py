"""Protocols of the facts about a group of workers that the fabric needs; settings fulfill them."""

from __future__ import annotations

from typing import Protocol

from berth.components.fabric.settings import Nccl


class Worker(Protocol):
    """A worker: its pool, memory, RDMA NICs, and GPUs, shares of GPUs or MIG instances."""

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


class Group(Protocol):
    """A group of such workers."""

    @property
    def worker(self) -> Worker:
        """Worker of the group; all are alike."""

    @property
    def nccl(self) -> Nccl:
        """NCCL's settings, complete."""
