"""The hardware table: the source of each figure, and the machines that matter most as their
pages describe them.
"""

from dataclasses import fields

import pytest

from berth.components.hardware.machines import (
    GPUS,
    MACHINES,
    RDMA_NICS,
    Gpu,
    Machine,
    Series,
    mig_memory_gib,
    mig_slices,
)
from tests.unit.cases import table

# Names and rows of their own have no page among a row's figures.
NO_FIGURES = {"name", "series", "gpu", "sources", "nccl"}
SERIES = {series.name: series for series in (machine.series for machine in MACHINES.values())}


@pytest.mark.parametrize("series", SERIES.values(), ids=lambda series: series.name)
def test_every_figure_of_a_series_and_its_machines_has_a_source(series: Series) -> None:
    figures = {field.name for kind in (Machine, Series) for field in fields(kind)} - NO_FIGURES
    assert series.sources.keys() == figures
    assert all(
        source.page and source.link.startswith("https://") for source in series.sources.values()
    )
    assert series.nccl is None or series.nccl.source.link.startswith("https://")


@pytest.mark.parametrize("gpu", GPUS.values(), ids=lambda gpu: gpu.accelerator)
def test_every_figure_of_a_gpu_has_a_source(gpu: Gpu) -> None:
    assert gpu.sources.keys() == {field.name for field in fields(Gpu)} - NO_FIGURES
    assert all(
        source.page and source.link.startswith("https://") for source in gpu.sources.values()
    )


@pytest.mark.parametrize("gpu", GPUS.values(), ids=lambda gpu: gpu.accelerator)
def test_mig_profiles_fit_their_gpu(gpu: Gpu) -> None:
    for profile, count in gpu.mig.items():
        assert count * mig_slices(profile) <= 7
        assert count * mig_memory_gib(profile) <= gpu.memory_gib + count
    assert not gpu.mig or max(map(mig_memory_gib, gpu.mig)) == gpu.memory_gib


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_figures_agree_with_each_other(machine: Machine) -> None:
    series = machine.series
    assert bool(machine.gpus) == bool(machine.gpu.accelerator)
    assert bool(series.gpu_network) == bool(series.gpu_nics)
    assert not (machine.local_ssds and machine.local_ssd_choices)
    assert series.boot_disks
    assert series.sold
    if machine.rdma:
        assert machine.gpus == series.gpu_nics <= RDMA_NICS


@pytest.mark.parametrize(("name", "local_ssds", "choices"), table(__file__, "machines.yaml"))
def test_local_ssds_by_size(name: str, local_ssds: int, choices: list[int]) -> None:
    assert (MACHINES[name].local_ssds, list(MACHINES[name].local_ssd_choices)) == (
        local_ssds,
        choices,
    )
