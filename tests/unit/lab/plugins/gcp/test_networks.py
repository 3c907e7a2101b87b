from __future__ import annotations

from typing import Any

import pytest

from berth.lab.plugins.provider import ProviderError

from .conftest import NETWORK, POOL, REGION, SUBNETWORK, Simulated, pool_inputs

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
