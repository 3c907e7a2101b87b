from typing import Any

import pytest

from berth.lab.plugins.gcp.conditions import Conditions
from berth.lab.plugins.gcp.errors import ProviderError
from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.supply import capacity_of, metrics, missing_of

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
        " blocks: [one], subBlocks: [sub]"
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
        (f"{RESERVATION}/reservationBlocks/one/reservationSubBlocks/two", "not found"),
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


def stock(available: int, machine: str = "a4-highgpu-8g") -> str:
    place = f"zone: {ZONE}, machineType: {machine}, capacity: on-demand"
    return f"stock: [{{{place}, available: {available}}}]"


def test_a_quota_that_is_too_small_is_reported_before_anything_is_made(
    simulated: Simulated,
) -> None:
    cluster = simulated.cluster()
    conditions(simulated, "projects: {'*': {quotas: {us-central1: {NVIDIA_B200_GPUS: 20}}}}")
    pool = simulated.create(POOL, **pool_inputs(cluster))
    with pytest.raises(ProviderError, match=r"requires '16\.0' and is short '4\.0'.* '12\.0' av"):
        simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=3))
    assert len(simulated.fleet.there) == 1
    simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=2))
    assert len(simulated.fleet.there) == 2


@pytest.mark.parametrize(
    "value",
    [
        "block",
        RESERVATION,
        f"{RESERVATION}/reservationBlocks/one",
        f"{RESERVATION}/reservationBlocks/one/reservationSubBlocks/sub",
    ],
)
def test_a_reservation_counts_the_machines_of_all_pools_by_whatever_name(
    simulated: Simulated, value: str
) -> None:
    cluster = simulated.cluster()
    none_else = "projects: {'*': {quotas: {us-central1: {NVIDIA_B200_GPUS: 0}}}}"
    conditions(simulated, f"{reservation(count=3)}\n{none_else}\n{stock(0)}")
    first = simulated.create(POOL, **pool_inputs(cluster, reserved(value), nodeCount=2))
    short = "required 2 and short of 1 VM"
    with pytest.raises(ProviderError, match=short):
        simulated.create(POOL, **pool_inputs(cluster, reserved(), nodeCount=2) | {"name": "second"})
    with pytest.raises(ProviderError, match=short):
        simulated.update(POOL, first, **pool_inputs(cluster, reserved(value), nodeCount=4))
    simulated.update(POOL, first, **pool_inputs(cluster, reserved(value), nodeCount=3))
    assert len(simulated.fleet.there) == 3


@pytest.mark.parametrize(("available", "state"), [(0, "ERROR"), (1, "RUNNING_WITH_ERROR")])
def test_a_new_pool_without_enough_machines_is_recorded_with_those_that_there_are(
    simulated: Simulated, available: int, state: str
) -> None:
    cluster = simulated.cluster()
    conditions(simulated, stock(available))
    with pytest.raises(
        ProviderError, match=f'NodePool a4 was created in the error state "{state}"'
    ):
        simulated.create(POOL, **pool_inputs(cluster, nodeCount=2))
    (pool,) = simulated.store.list("nodePools")
    assert (missing_of(pool), len(simulated.fleet.there)) == ({ZONE: 2 - available}, available)
    (warning,) = simulated.warnings
    assert f"ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/{PROJECT}/zones/{ZONE}'" in warning


def test_a_pool_that_cannot_grow_keeps_what_it_has(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, stock(2))
    pool = simulated.create(POOL, **pool_inputs(cluster))
    with pytest.raises(
        ProviderError, match="Error waiting for updating GKE node pool size: Google"
    ):
        simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=3))
    assert len(simulated.fleet.there) == 2


def test_who_has_more_than_there_is_keeps_it_and_may_shrink(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(POOL, **pool_inputs(cluster, nodeCount=3))
    conditions(simulated, stock(1))
    simulated.update(POOL, pool, **pool_inputs(cluster, {"labels": {"a": "b"}}, nodeCount=3))
    assert len(simulated.fleet.there) == 3
    simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=2))
    assert len(simulated.fleet.there) == 2


C = "us-central1-c"


def quota(gpus: int) -> str:
    return f"projects: {{'*': {{quotas: {{us-central1: {{NVIDIA_B200_GPUS: {gpus}}}}}}}}}"


def test_fewer_nodes_for_each_zone_go_before_a_new_zone_has_any(simulated: Simulated) -> None:
    inputs = pool_inputs(simulated.cluster(), nodeCount=2, nodeLocations=[ZONE])
    pool = simulated.create(POOL, **inputs)
    conditions(simulated, quota(16))
    before = set(simulated.fleet.there)
    simulated.update(POOL, pool, **inputs | {"nodeCount": 1, "nodeLocations": [ZONE, C]})
    assert len(simulated.fleet.there) == 2
    assert len(before & set(simulated.fleet.there)) == 1


def test_more_nodes_for_each_zone_come_before_a_zone_is_left(simulated: Simulated) -> None:
    inputs = pool_inputs(simulated.cluster(), nodeCount=1, nodeLocations=[ZONE, C])
    pool = simulated.create(POOL, **inputs)
    edited = inputs | {"nodeCount": 2, "nodeLocations": [ZONE]}
    conditions(simulated, quota(16))
    with pytest.raises(ProviderError, match="NVIDIA_B200_GPUS"):
        simulated.update(POOL, pool, **edited)
    conditions(simulated, quota(32))
    simulated.update(POOL, pool, **edited)
    assert len(simulated.fleet.there) == 2


def test_a_reservation_of_any_project_is_each_projects_own() -> None:
    shared = {"project": "*", "name": "a4-prod", "zone": "z", "machineType": "a4", "count": 4}
    own = {**shared, "project": "acme", "count": 2}
    conditions = Conditions.model_validate({"reservations": [shared, own]})
    found = [conditions.reservation(project, "a4-prod") for project in ("acme", "other")]
    assert [(one.project, one.count) for one in found if one] == [("acme", 2), ("other", 4)]
    assert conditions.reservation("other", "a4-lab") is None
