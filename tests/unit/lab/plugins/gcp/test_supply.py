from typing import Any

import pytest

from berth.lab.plugins.gcp.errors import ProviderError
from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.supply import capacity_of, metrics

from .conftest import A4, POOL, PROJECT, ZONE, Simulated, pool_inputs

RESERVATION = f"projects/{PROJECT}/reservations/block"


def reserved(value: str = RESERVATION) -> dict[str, Any]:
    return {
        "reservationAffinity": {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [value],
        }
    }


def conditions(simulated: Simulated, text: str) -> None:
    (simulated.store.folder / "conditions.yaml").write_text(text)


def reservation(zone: str = ZONE, machine: str = "a4-highgpu-8g", count: int = 2) -> str:
    inner = (
        f"project: {PROJECT}, name: block, zone: {zone}, machineType: {machine}, count: {count},"
        " blocks: [one]"
    )
    return f"reservations: [{{{inner}}}]"


@pytest.mark.parametrize(
    ("config", "capacity", "taken"),
    [
        (A4, "on-demand", {"NVIDIA_B200_GPUS": 8}),
        (A4 | {"spot": True}, "spot", {"PREEMPTIBLE_NVIDIA_B200_GPUS": 8}),
        (A4 | {"flexStart": True}, "flex-start", {"PREEMPTIBLE_NVIDIA_B200_GPUS": 8}),
        (A4 | reserved(), "reservation", {}),
        ({"machineType": "n2-standard-16"}, "on-demand", {"N2_CPUS": 16}),
        ({"machineType": "e2-standard-4"}, "on-demand", {"CPUS": 4}),
    ],
)
def test_which_quotas_a_node_takes(
    config: dict[str, Any], capacity: str, taken: dict[str, int]
) -> None:
    pool = PoolInputs({"nodeConfig": config})
    assert (capacity_of(pool), metrics(pool)) == (capacity, taken)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            "other",
            (
                'googleapi: Error 404: Google Compute Engine: reservation "other" not found for'
                ' node pool "a4" at zone'
            ),
        ),
        ("projects/another/reservations/block", "not found"),
        (f"{RESERVATION}/reservationBlocks/two", "not found"),
        # Only a path that begins with the project can name a block.
        ("block/reservationBlocks/one", "not found"),
    ],
)
def test_a_reservation_that_is_not_there(simulated: Simulated, value: str, text: str) -> None:
    cluster = simulated.cluster()
    conditions(simulated, reservation())
    with pytest.raises(ProviderError) as refusal:
        simulated.create(POOL, **pool_inputs(cluster, reserved(value)))
    assert text in str(refusal.value)


@pytest.mark.parametrize(
    ("there", "text"),
    [
        ({"zone": "us-central1-c"}, f'not found for node pool "a4" at zone "{ZONE}"'),
        (
            {"machine": "a3-ultragpu-8g"},
            "of machine type a3-ultragpu-8g and incompatible with node pool",
        ),
        ({"count": 0}, "required 1 and short of 1 VM count of machine type a4-highgpu-8g"),
    ],
)
def test_a_reservation_that_does_not_do(
    simulated: Simulated, there: dict[str, Any], text: str
) -> None:
    cluster = simulated.cluster()
    conditions(simulated, reservation(**there))
    with pytest.raises(ProviderError) as refusal:
        simulated.create(POOL, **pool_inputs(cluster, reserved()))
    assert text in str(refusal.value)
    assert not simulated.fleet.there
