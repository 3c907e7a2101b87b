"""Hardware table of machines.yaml: GPUs, series and machine types by name."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from berth.components.core import fast_yaml
from berth.components.hardware.facts import NO_GPU, UNKNOWN, Gpu, Machine, NcclProfile, Series

_TABLE: dict[str, dict[str, Any]] = fast_yaml.beside(__file__)

GPUS = {name: Gpu(accelerator=name, **figures) for name, figures in _TABLE["gpus"].items()}
"""GPUs by GKE's name."""


_Sizes = dict[str, dict[int, int]]


def _of_series(
    name: str,
    machines: dict[str, dict[str, Any]] | None = None,
    sizes: _Sizes | None = None,
    with_local_ssds: _Sizes | None = None,
    **figures: Any,
) -> Iterator[Machine]:
    series = Series(name=name, **figures)
    for machine, row in (machines or {}).items():
        gpu = _part(GPUS.get(row.pop("gpu", ""), NO_GPU), row.get("gpu_gib", 0))
        yield Machine(name=machine, series=series, gpu=gpu, **row)
    for family, memory in (sizes or {}).items():
        yield from (Machine(f"{family}-{vcpus}", series, vcpus, gib) for vcpus, gib in memory.items())
        for vcpus, count in (with_local_ssds or {}).get(family, {}).items():
            yield Machine(f"{family}-{vcpus}-lssd", series, vcpus, memory[vcpus], local_ssds=count)


def _part(gpu: Gpu, memory_gib: int) -> Gpu:
    """Return a GPU with another memory, a part of it or an unknown one: neither has instances."""
    return replace(gpu, memory_gib=memory_gib, mig={}) if memory_gib else gpu


MACHINES = {
    machine.name: machine for name, series in _TABLE["series"].items() for machine in _of_series(name, **series)
}
"""Machine types that berth knows, by name."""


@cache
def machine_of(name: str, accelerator: str = "", gpus: int = 0, memory_gib: int = 0) -> Machine:
    """Return a machine type with the GPUs that settings or a plan give it.

    GPUs belong to most machine types: what is given counts for those to which Google attaches some,
    and for machine types and GPUs that the table lacks. `memory_gib` is of one GPU, where it isn't
    the table's.
    """
    machine = MACHINES.get(name) or Machine(name, UNKNOWN, 0, 0)
    if machine.gpus or not gpus:
        return machine
    gpu = GPUS.get(accelerator) or replace(NO_GPU, accelerator=accelerator, product=accelerator)
    return replace(machine, gpus=gpus, gpu=_part(gpu, memory_gib))


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
