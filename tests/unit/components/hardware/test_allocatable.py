from dataclasses import replace

import pytest

from berth.components.hardware.allocatable import GIB, Amounts, allocatable_amounts, node_capacity
from berth.components.hardware.machines import MACHINES
from tests.unit.cases import table


def sized(name: str, max_pods: int = 110) -> Amounts:
    return allocatable_amounts(MACHINES[name], 100, 0, max_pods)


def test_two_nodes_whose_figures_others_published_are_met() -> None:
    """An a3-highgpu-8g and a tpu7x-standard-4t (224 vCPUs, 960 GiB), on GKE 1.36 or older."""
    node = sized("a3-highgpu-8g")
    assert node.cpu_millis == 207410
    assert node.memory / 1024 == pytest.approx(1885812064, rel=1e-4)
    other = allocatable_amounts(replace(MACHINES["a4-highgpu-8g"], memory_gib=960), 100, 0, 110)
    assert other.cpu_millis == 223370
    assert other.memory / 1024 == pytest.approx(963568636, rel=2e-4)


@pytest.mark.parametrize(("name", "millis", "gib"), table(__file__, "allocatable.yaml"))
def test_gkes_formula(name: str, millis: int, gib: float) -> None:
    assert sized(name).cpu_millis == millis
    assert sized(name).memory / GIB == pytest.approx(gib, abs=0.05)


def test_image_streaming_keeps_more_memory() -> None:
    """4 % of what the kubelet keeps anyway on 64 GiB: 1000, 800, 800 MiB and 6 % of the rest."""
    machine = MACHINES["n2-standard-16"]
    less = (
        sized("n2-standard-16").memory
        - allocatable_amounts(machine, 100, 0, 110, streaming=True).memory
    )
    assert less == pytest.approx(0.04 * (2600 + 0.06 * (65536 - 16000)) * (1 << 20), abs=2)


def test_nodes_of_many_pods_keep_more_cpu() -> None:
    assert sized("n2-standard-16", 111).cpu_millis == 15890 - 400


def test_ephemeral_storage_is_on_local_ssds_where_there_are_any() -> None:
    machine = MACHINES["a4-highgpu-8g"]
    assert node_capacity(machine, 100, 32).storage > 11 * 1024 * GIB
    # A4X's are eight times as large as those of other machines.
    assert node_capacity(MACHINES["a4x-highgpu-4g"], 100, 4).storage > 11 * 1024 * GIB
    assert node_capacity(machine, 100, 0).storage == 100 * GIB - 5885 * (1 << 20)
    # 10 % for eviction, and 100 GiB for the system from three SSDs on.
    whole = node_capacity(machine, 100, 32).storage
    assert allocatable_amounts(machine, 100, 32, 110).storage == whole - 100 * GIB - int(
        whole * 0.1
    )


def test_reserved_boot_disk_is_the_least_of_googles_three_amounts() -> None:
    machine = MACHINES["n2-standard-4"]
    for disk, reserved in ((20, 10), (100, 41), (1000, 100)):
        whole = node_capacity(machine, disk, 0).storage
        assert allocatable_amounts(machine, disk, 0, 110).storage == pytest.approx(
            whole * 0.9 - reserved * GIB, abs=2
        )
