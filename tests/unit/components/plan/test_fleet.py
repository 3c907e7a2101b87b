"""Owners of the pods on each pool, as a plan has them."""

from typing import Any

import pytest

from berth.components.plan.occupants import Usage, occupant_of
from berth.components.ray.manifest import ray_cluster
from tests.unit.components.fabric import A4, BY_NETWORKS, CLAIMED, PAIRED, complete


@pytest.mark.parametrize("pool", [A4, BY_NETWORKS, CLAIMED, PAIRED])
def test_gpus_are_whole_ones_be_they_counted_or_claimed(pool: dict[str, Any]) -> None:
    cluster, pools = complete(pool, "clusters", {"workers": 2})
    occupant = occupant_of(ray_cluster(cluster, pools, "berth-x", {"berth/cluster": "x"}))
    assert occupant.on["train"] == Usage(pods=2, gpus=16, shares=False)
    assert occupant.on["cpu"] == Usage(pods=1)
