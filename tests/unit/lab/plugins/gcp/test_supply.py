from __future__ import annotations

from typing import Any

import pytest

from berth.lab.plugins.gcp.errors import ProviderError
from berth.lab.plugins.gcp.pools import Pool
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
    inner = f"project: {PROJECT}, name: block, zone: {zone}, machineType: {machine}, count: {count}, blocks: [one]"
    return f"reservations: [{{{inner}}}]"


def quota(**limits: int) -> str:
    inner = ", ".join(f"{metric}: {limit}" for metric, limit in limits.items())
    return f'projects: {{"*": {{services: [container.googleapis.com], quotas: {{us-central1: {{{inner}}}}}}}}}'


def stock(available: int, capacity: str = "on-demand", zone: str = ZONE) -> str:
    inner = f"zone: {zone}, machineType: a4-highgpu-8g, capacity: {capacity}, available: {available}"
    return f"stock: [{{{inner}}}]"


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
def test_which_quotas_a_node_takes(config: dict[str, Any], capacity: str, taken: dict[str, int]) -> None:
    pool = Pool({"nodeConfig": config})
    assert (capacity_of(pool), metrics(pool)) == (capacity, taken)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            "other",
            'googleapi: Error 404: Google Compute Engine: reservation "other" not found for node pool "a4" at zone',
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
        ({"machine": "a3-ultragpu-8g"}, "of machine type a3-ultragpu-8g and incompatible with node pool"),
        ({"count": 0}, "required 1 and short of 1 VM count of machine type a4-highgpu-8g"),
    ],
)
def test_a_reservation_that_does_not_do(simulated: Simulated, there: dict[str, Any], text: str) -> None:
    cluster = simulated.cluster()
    conditions(simulated, reservation(**there))
    with pytest.raises(ProviderError) as refusal:
        simulated.create(POOL, **pool_inputs(cluster, reserved()))
    assert text in str(refusal.value)
    assert not simulated.fleet.there


@pytest.mark.parametrize("value", ["block", RESERVATION, f"{RESERVATION}/reservationBlocks/one"])
def test_a_reservation_is_used_by_name_path_and_block_and_counts_all_pools(simulated: Simulated, value: str) -> None:
    cluster = simulated.cluster()
    conditions(simulated, reservation(count=3) + "\n" + quota(NVIDIA_B200_GPUS=0) + "\n" + stock(0))
    first = simulated.create(POOL, **pool_inputs(cluster, reserved(value), nodeCount=2))
    with pytest.raises(ProviderError, match=r'is insufficient for node pool "second" .* required 2 and short of 1 VM'):
        simulated.create(POOL, **pool_inputs(cluster, reserved(), name="second", nodeCount=2))
    with pytest.raises(ProviderError, match="required 2 and short of 1 VM"):
        simulated.update(POOL, first, **pool_inputs(cluster, reserved(value), nodeCount=4))
    simulated.update(POOL, first, **pool_inputs(cluster, reserved(value), nodeCount=3))
    assert len(simulated.fleet.there) == 3


def test_who_has_more_than_there_is_keeps_it_and_may_shrink(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(POOL, **pool_inputs(cluster, nodeCount=3))
    conditions(simulated, stock(1))
    simulated.update(POOL, pool, **pool_inputs(cluster, {"labels": {"a": "b"}}, nodeCount=3))
    assert len(simulated.fleet.there) == 3
    simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=2))
    assert len(simulated.fleet.there) == 2


def test_broken_conditions_stop_what_depends_on_them(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, "stock: 3")
    with pytest.raises(ProviderError, match=r"conditions\.yaml are not readable \(stock: Input should be"):
        simulated.create(POOL, **pool_inputs(cluster))
    assert not simulated.store.list("nodePools")
