"""Minimal environments: what nobody wrote warns nobody."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from berth.components.core.problems import SettingPath
from berth.components.hardware.machines import MACHINES, RDMA_NICS, Machine
from tests.unit.loaded import environment_of, environment_values

ONE_OF_SERIES = {machine.series.name: machine for machine in MACHINES.values()}
"""A machine type of each series: the largest one that the table has."""
RDMA = ("none", "managed", "networks")
OWNERS = ("engineers", "clusters")


def pool_of(machine: Machine, rdma: str) -> dict[str, Any]:
    """A pool with nothing but what the machine type requires."""
    pool: dict[str, Any] = {"machineType": machine.name, "nodes": 2}
    if machine.series.attaches and not machine.gpus:
        accelerator, most_vcpus = next(iter(machine.series.attaches.items()))
        pool["gpus"] = {"type": accelerator, "count": max(most_vcpus)}
    if "on-demand" not in machine.series.sold and "reservation" not in machine.series.sold:
        pool["capacity"] = machine.series.sold[-1]
    if rdma != "none":
        pool["rdma"] = rdma
    return pool


def minimal() -> Iterator[Any]:
    """Machine type, way of RDMA, and owner of a RayCluster."""
    with_gpus = [
        machine for machine in ONE_OF_SERIES.values() if machine.gpus or machine.series.attaches
    ]
    for machine, rdma, owner in product(with_gpus, RDMA, OWNERS):
        # berth makes networks for as many NICs as the largest machine types have.
        if rdma == "networks" and machine.series.gpu_nics != RDMA_NICS:
            continue
        if rdma == "none" or machine.rdma:
            yield pytest.param(machine, rdma, owner, id=f"{machine.name}-{rdma}-{owner}")


def is_written(path: SettingPath, settings: Mapping[str, Any]) -> bool:
    value: Any = {"environment": settings}
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True


@pytest.mark.parametrize(("machine", "rdma", "owner"), minimal())
def test_no_default_warns_about_itself(machine: Machine, rdma: str, owner: str) -> None:
    ray: dict[str, Any] = {}
    if machine.series.arm64:
        ray["image"] = "registry.example.com/ray:2.60.0"  # no image of Ray's has both architectures
    if rdma != "none" and owner == "engineers":
        ray["worker"] = {"gpus": machine.gpus}  # policy rdma-whole asks for all of a node
    settings = environment_values(gpu=pool_of(machine, rdma)) | {owner: {"x": ray}}
    warnings = environment_of("env", settings).warnings
    unwritten = [warning for warning in warnings if not is_written(warning.path, settings)]
    assert unwritten == []
