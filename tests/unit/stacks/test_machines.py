"""The machine table: where each figure comes from, and what it says of the machines that matter most."""

from __future__ import annotations

from dataclasses import fields

import pytest

from berth.components.gke.ranges import RDMA_NICS
from berth.components.hardware import mig
from berth.components.hardware.machines import MACHINES, Machine
from berth.components.hardware.series import Series

# Names are no figures, and GKE's name of a GPU is not of the machines' pages.
NO_FIGURES = {"name", "series", "sources", "accelerator", "gpu_product"}
FIGURES = ({field.name for field in fields(Machine)} | {field.name for field in fields(Series)}) - NO_FIGURES

ALL = pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)


@ALL
def test_every_figure_has_a_source(machine: Machine) -> None:
    sources = machine.series.sources
    assert sources.keys() == FIGURES
    for source in sources.values():
        assert source.page
        assert source.link.startswith("https://")


@ALL
def test_figures_agree_with_each_other(machine: Machine) -> None:
    series = machine.series
    assert bool(machine.gpus) == bool(machine.accelerator) == bool(machine.gpu_product) == bool(machine.gpu_memory_gib)
    assert bool(machine.gpus) == bool(series.oldest_driver) == (series.oldest_cuda != (0, 0))
    assert bool(series.gpu_network) == bool(series.gpu_nics)
    assert not (machine.local_ssds and machine.local_ssd_choices)
    assert machine.boot_disks
    assert series.sold
    if machine.rdma:
        assert machine.gpus == series.gpu_nics == RDMA_NICS
    if machine.accelerator in mig.INSTANCES:
        assert f"7g.{machine.gpu_memory_gib}gb" in mig.INSTANCES[machine.accelerator]


def test_the_a4_as_its_page_describes_it() -> None:
    a4 = MACHINES["a4-highgpu-8g"]
    assert (a4.vcpus, a4.memory_gib, a4.gpus, a4.gpu_memory_gib * a4.gpus) == (224, 3968, 8, 1440)
    assert (a4.local_ssds * 375, a4.series.gpu_nics + a4.series.other_nics) == (12_000, 10)
    assert (a4.series.oldest_driver, a4.series.oldest_cuda, a4.boot_disks) == (570, (12, 8), ("hyperdisk-balanced",))
    assert "on-demand" not in a4.series.sold


@pytest.mark.parametrize(
    ("name", "local_ssds", "choices"),
    [
        ("n2-standard-2", 0, (1, 2, 4, 8, 16, 24)),
        ("n2-standard-16", 0, (2, 4, 8, 16, 24)),
        ("n2-highmem-128", 0, (16, 24)),
        ("n2d-standard-48", 0, (2, 4, 8, 16, 24)),
        ("n2d-standard-224", 0, (8, 16, 24)),
        ("e2-standard-8", 0, ()),
        ("c3-standard-8", 0, ()),
        ("a3-highgpu-1g", 2, ()),
        ("a2-megagpu-16g", 0, (8,)),
        ("g2-standard-96", 0, (8,)),
    ],
)
def test_local_ssds_by_size(name: str, local_ssds: int, choices: tuple[int, ...]) -> None:
    assert (MACHINES[name].local_ssds, MACHINES[name].local_ssd_choices) == (local_ssds, choices)
