"""The GPUs of GKE's machines, as the driver reports them.

Answers to (read): the sources of the hardware table (components/hardware/machines.py): names, memory, compute capability, MIG
Answers to (read): https://github.com/NVIDIA/mig-parted/blob/v0.15.0/deployments/systemd/config-default.yaml (layout all-balanced)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.components.hardware import machines as hardware
from berth.components.hardware.facts import mig_slices

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU.

    Attributes:
        name: as the driver reports it.
        memory_mib: its memory, in MiB.
        compute: compute capability, major and minor.
        family: architecture, as feature discovery names it.
        mig: how many instances of each MIG profile one GPU holds; empty without MIG.
    """

    name: str
    memory_mib: int
    compute: tuple[int, int]
    family: str
    mig: Mapping[str, int]

    @property
    def product(self) -> str:
        """The name as a label's value."""
        return "-".join(self.name.split())

    def balanced(self) -> dict[str, int]:
        """The instances of mig-parted's `all-balanced`: two of one slice, one of two, one of three; empty without MIG."""
        smallest: dict[int, str] = {}
        for profile in self.mig:
            smallest.setdefault(slices(profile), profile)
        return {smallest[size]: count for size, count in ((1, 2), (2, 1), (3, 1)) if size in smallest}


slices = mig_slices

GPUS = {
    name: Gpu(gpu.driver_name, gpu.driver_memory_mib, gpu.compute, "-".join(gpu.architecture.lower().split()), gpu.mig)
    for name, gpu in hardware.GPUS.items()
}
"""Kinds of GPUs by GKE's name: the value of the label `cloud.google.com/gke-accelerator`."""
