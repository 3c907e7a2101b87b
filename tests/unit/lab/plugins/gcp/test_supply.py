from __future__ import annotations

from typing import Any

import pytest

from berth.lab.plugins.gcp.pools import Pool
from berth.lab.plugins.gcp.supply import capacity_of, metrics
from berth.lab.plugins.provider import InitFailedError, ProviderError

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


def test_a_quota_that_is_too_small_is_said_at_once(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, quota(NVIDIA_B200_GPUS=8))
    simulated.create(POOL, **pool_inputs(cluster, name="first"))
    with pytest.raises(ProviderError) as refusal:
        simulated.create(POOL, **pool_inputs(cluster, nodeCount=2))
    assert str(refusal.value) == (
        "Error creating NodePool: googleapi: Error 403: Insufficient regional quota to satisfy request: resource "
        "\"NVIDIA_B200_GPUS\": request requires '16.0' and is short '16.0'. project has a quota of '8.0' with '0.0' "
        "available. View and manage quotas at https://console.cloud.google.com/iam-admin/quotas?usage=USED&project="
        f"{PROJECT}., forbidden"
    )
    assert len(simulated.fleet.there) == 1


def test_growing_is_refused_by_a_quota_and_leaves_the_pool_as_it_is(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, quota(NVIDIA_B200_GPUS=16))
    pool = simulated.create(POOL, **pool_inputs(cluster))
    with pytest.raises(ProviderError, match=r"request requires '16\.0' and is short '8\.0'"):
        simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=3))
    assert len(simulated.fleet.there) == 1
    simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=2))
    assert len(simulated.fleet.there) == 2


def test_spot_has_a_quota_of_its_own(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, quota(NVIDIA_B200_GPUS=0, PREEMPTIBLE_NVIDIA_B200_GPUS=8))
    simulated.create(POOL, **pool_inputs(cluster, {"spot": True}))
    with pytest.raises(ProviderError, match='"PREEMPTIBLE_NVIDIA_B200_GPUS"'):
        simulated.create(POOL, **pool_inputs(cluster, {"spot": True}, name="second"))


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


def test_a_new_pool_that_machines_cannot_be_had_for_is_there_in_an_error_state(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, stock(0))
    with pytest.raises(InitFailedError) as failure:
        simulated.create(POOL, **pool_inputs(cluster, nodeCount=2))
    assert failure.value.reasons == ['NodePool a4 was created in the error state "ERROR"']
    assert failure.value.properties["nodeCount"] == 2
    assert simulated.store.get(failure.value.resource_id)
    assert not simulated.fleet.there
    warning = simulated.warnings[-1]
    assert "Not all instances running in IGM after 0s. Expected 2, running 0, transitioning 2." in warning
    assert "[GCE_STOCKOUT]: Instance 'gke-fleet-a4-" in warning
    assert (
        f"ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/{PROJECT}/zones/{ZONE}' does not have enough resources "
        "available to fulfill the request."
    ) in warning


def test_a_pool_that_gets_some_of_its_machines_has_them(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, stock(1))
    with pytest.raises(InitFailedError, match='in the error state "RUNNING_WITH_ERROR"') as failure:
        simulated.create(POOL, **pool_inputs(cluster, nodeCount=2))
    assert len(simulated.fleet.there) == 1
    # Its size is what it should be: nothing has drifted.
    assert simulated.read(POOL, failure.value.resource_id).properties["nodeCount"] == 2


def test_the_next_update_takes_what_has_come(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, stock(1))
    with pytest.raises(InitFailedError) as failure:
        simulated.create(POOL, **pool_inputs(cluster, nodeCount=2))
    pool = failure.value.resource_id
    simulated.states[pool] = (simulated.check(POOL, **pool_inputs(cluster, nodeCount=2))[0], failure.value.properties)
    # The program asks for nothing new: the provider is content, whatever is there.
    simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=2))
    assert len(simulated.fleet.there) == 1
    conditions(simulated, "stock: []")
    simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=2))
    assert len(simulated.fleet.there) == 2


def test_growing_without_machines_fails_with_the_instances_errors(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(POOL, **pool_inputs(cluster))
    conditions(simulated, stock(1))
    with pytest.raises(InitFailedError) as failure:
        simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=3))
    assert failure.value.reasons[0].startswith(
        "Error waiting for updating GKE node pool size: Google Compute Engine: Not all instances running in IGM"
    )
    assert "Expected 3, running 1, transitioning 2" in failure.value.reasons[0]
    assert len(simulated.fleet.there) == 1


def test_who_has_more_than_there_is_keeps_it_and_may_shrink(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    pool = simulated.create(POOL, **pool_inputs(cluster, nodeCount=3))
    conditions(simulated, stock(1))
    simulated.update(POOL, pool, **pool_inputs(cluster, {"labels": {"a": "b"}}, nodeCount=3))
    assert len(simulated.fleet.there) == 3
    simulated.update(POOL, pool, **pool_inputs(cluster, nodeCount=2))
    assert len(simulated.fleet.there) == 2


@pytest.mark.parametrize("config", [{}, {"flexStart": True}])
def test_an_autoscaled_pool_is_made_without_machines(simulated: Simulated, config: dict[str, Any]) -> None:
    cluster = simulated.cluster()
    conditions(simulated, stock(0) + "\n" + quota(NVIDIA_B200_GPUS=0))
    inputs = pool_inputs(cluster, config, autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 4})
    del inputs["nodeCount"]
    pool = simulated.create(POOL, **inputs)
    assert simulated.read(POOL, pool).properties["nodeCount"] == 0


def test_a_queued_pool_says_that_its_nodes_do_not_come_here(simulated: Simulated) -> None:
    config = {"flexStart": True, "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}
    inputs = pool_inputs(simulated.cluster(), config, queuedProvisioning={"enabled": True})
    inputs["autoscaling"] = {"totalMinNodeCount": 0, "totalMaxNodeCount": 4}
    del inputs["nodeCount"]
    simulated.create(POOL, **inputs)
    assert "its nodes come by ProvisioningRequests, which this lab does not serve" in simulated.warnings[-1]


def test_broken_conditions_stop_what_depends_on_them(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    conditions(simulated, "stock: 3")
    with pytest.raises(ProviderError, match=r"conditions\.yaml are not readable \(stock: Input should be"):
        simulated.create(POOL, **pool_inputs(cluster))
    assert not simulated.store.list("nodePools")
