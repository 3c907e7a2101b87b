"""Hardware table of machines.yaml: GPUs, series and machine types by name."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from berth.components.core import fast_yaml
from berth.components.hardware.facts import NO_GPU, UNKNOWN, Gpu, Machine, NcclProfile, Series

_TABLE: dict[str, dict[str, Any]] = fast_yaml.read(Path(__file__).with_name("machines.yaml"))

GPUS = {name: Gpu(accelerator=name, **figures) for name, figures in _TABLE["gpus"].items()}
"""GPUs by GKE's name."""


def _of_series(name: str, machines: dict[str, dict[str, Any]], **figures: Any) -> list[Machine]:
    series = Series(name=name, **figures)
    return [
        Machine(name=machine, series=series, gpu=GPUS.get(row.pop("gpu", ""), NO_GPU), **row)
        for machine, row in machines.items()
    ]


MACHINES = {
    machine.name: machine for name, series in _TABLE["series"].items() for machine in _of_series(name, **series)
}
"""Machine types that berth knows, by name."""


@cache
def machine_of(name: str, accelerator: str = "", gpus: int = 0, memory_gib: int = 0) -> Machine:
    """Return a machine type with the GPUs that settings or a plan give it.

    GPUs belong to most machine types: what is given counts for those to which Google attaches some,
    and for machine types and GPUs that the table lacks.

    Args:
        name: the machine type.
        accelerator: GKE's name for the GPU.
        gpus: number of GPUs of a node.
        memory_gib: memory of one of them, where it isn't the table's.
    """
    machine = MACHINES.get(name) or Machine(name, UNKNOWN, 0, 0)
    if machine.gpus or not gpus:
        return machine
    gpu = GPUS.get(accelerator) or replace(NO_GPU, accelerator=accelerator, product=accelerator)
    if memory_gib:
        # A part of a GPU, or an unknown one; neither is known to be cut into instances.
        gpu = replace(gpu, memory_gib=memory_gib, mig={})
    return replace(machine, gpus=gpus, gpu=gpu)


GIB_PROFILES: dict[str, NcclProfile] = {
    machine.series.nccl.name: machine.series.nccl for machine in MACHINES.values() if machine.series.nccl
}
"""NCCL's profiles for gIB, by name."""

GIB = "gib"
"""NCCL's profile of workers that take the environment of the node's own gIB."""

NCCL_PROFILES = (GIB, *GIB_PROFILES, "single-node", "none")
"""Values of `nccl.profile`: gIB's own environment, pinned ones, GPUs of one node, and nothing."""

RDMA_NICS = max(machine.series.gpu_nics for machine in MACHINES.values() if machine.rdma)
"""RDMA NICs of a node, and so subnetworks of an RDMA network."""
