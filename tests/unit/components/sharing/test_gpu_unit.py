"""Words for amounts of GPUs, by the way in which a pool shares them."""

import pytest
from pydantic import TypeAdapter

from berth.components.gke import PoolSettings
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.sharing import SharingProfile, offered_pools
from tests.unit.cases import table


def unit_on(machine: str, profile: dict[str, object]) -> GpuUnit:
    """Unit of the GPUs of a pool, by its machine type."""
    pool = PoolSettings.model_validate({"machineType": machine, "nodes": 1, "sharing": "any"})
    profiles = {"any": TypeAdapter(SharingProfile).validate_python(profile)}
    return offered_pools({"dev": pool}, profiles)["dev"].gpu_unit


@pytest.mark.parametrize(
    ("machine", "profile", "amounts", "briefs"), table(__file__, "gpu_unit.yaml")
)
def test_amounts_are_named_as_what_they_are(
    machine: str, profile: dict[str, object], amounts: list[str], briefs: list[str]
) -> None:
    unit = unit_on(machine, profile)
    assert [unit.amount(count) for count in (0, 1, 4)] == ["no GPU", *amounts]
    assert [unit.brief(1), unit.brief(3, 8)] == briefs


def test_amounts_of_a_pool_that_is_not_known() -> None:
    assert [GpuUnit().amount(count) for count in (0, 1, 2)] == ["no GPU", "1 GPU", "2 GPUs"]
    share = GpuUnit(kind="share", per_gpu=0)
    assert [share.amount(1), share.amount(2)] == ["1 share of a GPU", "2 shares of a GPU"]
