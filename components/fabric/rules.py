"""Rules of a RayCluster's fabric: NICs, claimed GPUs and NCCL's profile, held to its pool."""

from collections.abc import Iterable
from typing import Literal

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import beside, broken
from berth.components.core.types import parse_quantity
from berth.components.core.words import counted
from berth.components.fabric.settings import Worker
from berth.components.hardware.machines import GIB_PROFILES, MACHINES
from berth.components.sharing import Pool


def fabric_problems(
    table: Literal["nics", "nccl", "alignment"], worker: Worker, pool: Pool, path: SettingPath
) -> Iterable[Problem]:
    """Return what a table of contradictions says of a worker on its pool, at a path of settings."""
    profile, tuned, most = (
        worker.nccl.profile,
        pool.settings.machine.series.nccl,
        pool.settings.nics,
    )
    of_gib = GIB_PROFILES.get(profile)
    return broken(
        beside(__file__)[table],
        path,
        worker=worker,
        pool=pool,
        machine=pool.settings.machine,
        gpus=pool.counted(worker.gpus),
        nics=counted(worker.nics, "NIC"),
        part=not (worker.gpus == pool.per_node and worker.nics == most) and 0 < worker.nics <= most,
        gib=of_gib is not None,
        fits=tuned is not None and tuned.name == profile,
        instead=tuned.name if tuned else "single-node",
        tuned_for=[
            name for name, machine in MACHINES.items() if of_gib and machine.series.nccl == of_gib
        ],
        shared=worker.nccl.shared_memory and parse_quantity(worker.nccl.shared_memory),
        memory=parse_quantity(worker.memory),
    )


def resource_problems(given: str | None, pool: Pool, path: SettingPath) -> Iterable[Problem]:
    """Return a problem for a name of GPUs on a pool that claims them."""
    return broken(beside(__file__)["resource"], path, given=given, pool=pool)
