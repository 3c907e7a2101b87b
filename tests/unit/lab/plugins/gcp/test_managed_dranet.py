from __future__ import annotations

from typing import TYPE_CHECKING

from .conftest import POOL, pool_inputs

if TYPE_CHECKING:
    from .conftest import Simulated

LABEL = {"cloud.google.com/gke-networking-dra-driver": "true"}


def test_device_classes_come_with_the_first_pool_of_managed_dranet(simulated: Simulated) -> None:
    cluster = simulated.cluster()
    simulated.create(POOL, **pool_inputs(cluster, name="plain"))
    assert simulated.fleet.classes_defined == 0
    networks = {"acceleratorNetworkProfile": "auto"}
    simulated.create(POOL, **pool_inputs(cluster, {"labels": LABEL}, name="fabric", networkConfig=networks))
    assert simulated.fleet.classes_defined == 1
    (node,) = simulated.fleet.nodes("fabric").values()
    assert node["metadata"]["labels"]["gke.networks.io/accelerator-network-profile"] == "auto"
