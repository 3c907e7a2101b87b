"""Hardware table of machines.yaml: GPUs, series and machine types by name."""

from pathlib import Path
from typing import Any

from berth.components.core import fast_yaml
from berth.components.hardware.facts import NO_GPU, Gpu, Machine, NcclProfile, Series

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
