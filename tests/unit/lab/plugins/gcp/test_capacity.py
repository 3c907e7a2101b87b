from __future__ import annotations

import pytest

from berth.components.hardware.machines import MACHINES
from berth.lab.plugins.gcp.capacity import GIB, MIB, allocatable, capacity


@pytest.mark.parametrize(
    ("name", "millis"),
    # GKE's page on node sizes: 6 % of the first core, 1 % of the second, 0.5 % of the next two,
    # 0.25 % of the rest.
    [("n2-standard-2", 1930), ("n2-standard-4", 3920), ("n2-standard-8", 7910), ("n2-standard-32", 31850)],
)
def test_allocatable_cpu_is_that_of_gkes_page(name: str, millis: int) -> None:
    assert allocatable(MACHINES[name], 100, 0).cpu_millis == millis


@pytest.mark.parametrize(
    ("name", "reserved_mib"),
    # 25 % of 4 GiB, 20 % of 4, 10 % of 8, 6 % of 112, 2 % of the rest, in MiB and rounded down; 100
    # MiB for eviction.
    [("n2-standard-4", 2662), ("n2-standard-32", 9543), ("a4-highgpu-8g", 9543 + 78643)],
)
def test_allocatable_memory_is_that_of_gkes_page(name: str, reserved_mib: int) -> None:
    machine = MACHINES[name]
    difference = capacity(machine, 100, 0).memory - allocatable(machine, 100, 0).memory
    assert difference == pytest.approx((reserved_mib + 100) * MIB, abs=MIB)


def test_ephemeral_storage_is_on_local_ssds_where_there_are_any() -> None:
    machine = MACHINES["a4-highgpu-8g"]
    assert capacity(machine, 100, 32).storage > 11 * 1024 * GIB
    assert capacity(machine, 100, 0).storage < 100 * GIB
    # 10 % for eviction, and 100 GiB for the system from three SSDs on.
    whole = capacity(machine, 100, 32).storage
    assert allocatable(machine, 100, 32).storage == whole - 100 * GIB - int(whole * 0.1)


def test_reserved_boot_disk_is_the_least_of_googles_three_amounts() -> None:
    machine = MACHINES["n2-standard-4"]
    for disk, reserved in ((20, 10), (100, 41), (1000, 100)):
        whole = capacity(machine, disk, 0).storage
        assert allocatable(machine, disk, 0).storage == pytest.approx(whole * 0.9 - reserved * GIB, abs=2)
