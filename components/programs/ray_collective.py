"""Process of a sum by Ray's own collective library: one for each worker, with all its GPUs.

The job of nccl_allreduce_multigpu.py in the DraNet documentation
(https://github.com/kubernetes-sigs/dranet, site/content/docs/user/kuberay.md). Runs in the same
module as all_reduce.py, before it. Python 3.9 and later.
"""

from __future__ import annotations

from typing import Any

GROUP = "berth-all-reduce"


class Member:
    """Process with all GPUs of a worker, and a tensor on each of them."""

    def __init__(self, rank: int, world: int, gpus: int) -> None:
        self.rank = rank
        self.world = world
        self.gpus = gpus

    def sum(self) -> list[list[float]]:
        """Sum four ones of each even GPU and four twos of each odd one, over all workers."""
        # CuPy finds no NCCL of its own, but takes the one that torch has loaded.
        import torch  # noqa: PLC0415
        from ray.util import collective  # noqa: PLC0415

        tensors: list[Any] = [torch.ones(4, device=f"cuda:{number}") * (1 + number % 2) for number in range(self.gpus)]
        collective.init_collective_group(self.world, self.rank, "nccl", GROUP)
        collective.allreduce_multigpu(tensors, GROUP)
        sums = [[float(value) for value in tensor.cpu()] for tensor in tensors]
        collective.destroy_collective_group(GROUP)
        return sums


def expected(world: int, gpus: int) -> float:
    """Return what every element must be: 24 for two workers with eight GPUs each."""
    return float(world * (gpus + gpus // 2))
