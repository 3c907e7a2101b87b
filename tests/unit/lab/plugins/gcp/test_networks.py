from __future__ import annotations

from typing import Any

import pytest

from berth.lab.plugins.provider import Kind, ProviderError

from .conftest import NETWORK, POOL, PROJECT, REGION, SUBNETWORK, ZONE, Simulated, pool_inputs

ROUTER = "gcp:compute/router:Router"
NAT = "gcp:compute/routerNat:RouterNat"


def router(simulated: Simulated, network: str, **more: Any) -> str:
    return simulated.create(ROUTER, **{"name": "gpu-router", "network": network, "region": REGION} | more)


def nat_inputs(**more: Any) -> dict[str, Any]:
    inputs = {"name": "nat", "router": "gpu-router", "region": REGION, "natIpAllocateOption": "AUTO_ONLY"}
    return inputs | {"sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"} | more


def test_a_network_stays_while_it_has_a_router_and_a_router_while_it_has_a_nat(simulated: Simulated) -> None:
    network = simulated.network()
    there = router(simulated, network)
    nat = simulated.create(NAT, **nat_inputs())
    with pytest.raises(ProviderError, match=rf"The network resource '{network}' is already being used by '{there}'"):
        simulated.delete(NETWORK, network)
    with pytest.raises(ProviderError, match=rf"The router resource '{there}' is already being used by '{nat}'"):
        simulated.delete(ROUTER, there)
    simulated.delete(NAT, nat)
    simulated.delete(ROUTER, there)
    simulated.delete(NETWORK, network)
    assert simulated.store.all() == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"router": "other"},
            f"Error 404: The resource 'projects/{PROJECT}/regions/{REGION}/routers/other' was not found",
        ),
        ({"region": "europe-west4"}, "regions/europe-west4/routers/gpu-router' was not found"),
        ({"natIpAllocateOption": "MANUAL_ONLY"}, "NAT IPs must be given for MANUAL_ONLY"),
        ({"sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS"}, "subnetworks go with LIST_OF_SUBNETWORKS"),
        (
            {"enableDynamicPortAllocation": True, "enableEndpointIndependentMapping": True},
            "cannot be enabled together with Endpoint Independent Mapping",
        ),
    ],
)
def test_a_nat_that_compute_engine_refuses(simulated: Simulated, more: dict[str, Any], text: str) -> None:
    router(simulated, simulated.network())
    with pytest.raises(ProviderError) as refusal:
        simulated.create(NAT, **nat_inputs(**more))
    assert text in str(refusal.value)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"region": "moon-1"}, "region"),
        ({"natIpAllocateOption": "SOMETIMES"}, "natIpAllocateOption"),
        ({"logConfig": {"enable": True, "filter": "NONE"}}, "logConfig.filter"),
    ],
)
def test_values_of_a_nat_are_checked_before_anything_is_sent(
    simulated: Simulated, more: dict[str, Any], path: str
) -> None:
    _, failures = simulated.check(NAT, **nat_inputs(**more))
    assert [where for where, _ in failures] == [path]


def test_a_router_needs_a_network_that_takes_one(simulated: Simulated) -> None:
    with pytest.raises(ProviderError, match="Error 404"):
        router(simulated, "nowhere")
    profile = f"projects/{PROJECT}/global/networkProfiles/{ZONE}-vpc-roce"
    rdma = simulated.network("rdma", networkProfile=profile)
    with pytest.raises(ProviderError, match="which does not allow Cloud Routers"):
        router(simulated, rdma)


def test_a_nat_changes_in_place_and_follows_its_router(simulated: Simulated) -> None:
    router(simulated, simulated.network())
    nat = simulated.create(NAT, **nat_inputs())
    found = simulated.diff(NAT, nat, **nat_inputs(enableDynamicPortAllocation=True))
    assert found.detailed == {"enableDynamicPortAllocation": Kind.UPDATE}
    simulated.update(NAT, nat, **nat_inputs(enableDynamicPortAllocation=True))
    assert simulated.diff(NAT, nat, **nat_inputs(router="other")).detailed["router"] == Kind.UPDATE_REPLACE


def test_a_pools_further_networks_stay_while_it_is_there(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    second = simulated.network("second")
    subnetwork = simulated.subnetwork(second, "second", "10.1.0.0/20")
    extra = {"networkConfig": {"additionalNodeNetworkConfigs": [{"network": "second", "subnetwork": "second"}]}}
    pool = simulated.create(POOL, **pool_inputs(cluster, **extra))
    with pytest.raises(
        ProviderError, match=rf"The subnetwork resource '{subnetwork}' is already being used by '{pool}'"
    ):
        simulated.delete(SUBNETWORK, subnetwork)
    # Whoever removes the subnetwork's file sees that the network is in use all the same.
    simulated.store.remove(subnetwork)
    with pytest.raises(ProviderError, match=rf"The network resource '{second}' is already being used by '{pool}'"):
        simulated.delete(NETWORK, second)


def test_a_shared_networks_project_counts(simulated: Simulated) -> None:
    host = simulated.create(NETWORK, name="shared", project="host-project", autoCreateSubnetworks=False)
    own = simulated.network("shared")
    simulated.subnetwork(host, "nodes", project="host-project")
    with pytest.raises(ProviderError, match="already being used"):
        simulated.delete(NETWORK, host)
    simulated.delete(NETWORK, own)
