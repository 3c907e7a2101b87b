"""Owners of the pods on each pool, as a plan has them."""

from typing import Any

import pytest

from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.plan.effect import sitting_on
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.occupants import Occupant, Usage, occupant_of
from berth.components.ray.manifest import ray_cluster
from tests.unit.components.fabric import A4, BY_NETWORKS, CLAIMED, PAIRED, complete


@pytest.mark.parametrize("pool", [A4, BY_NETWORKS, CLAIMED, PAIRED])
def test_gpus_are_whole_ones_be_they_counted_or_claimed(pool: dict[str, Any]) -> None:
    cluster, pools = complete(pool, "clusters", {"workers": 2})
    occupant = occupant_of(ray_cluster(cluster, pools, "berth-x", {"berth/cluster": "x"}))
    assert occupant.on["train"] == Usage(pods=2, gpus=16, shares=False)
    assert occupant.on["cpu"] == Usage(pods=1)


@pytest.mark.parametrize(
    ("unit", "shares", "words"),
    [
        (GpuUnit("L4", "share", per_gpu=4), True, "2 shares of 1/4 L4"),
        # Instances that pods claim are no shares to Ray.
        (GpuUnit("B200", "mig", "1g.23gb", 7), False, "2 × MIG 1g.23gb"),
        (GpuUnit("B200", "mig", "1g.23gb", 7), True, "2 × MIG 1g.23gb"),
        # The pool is shared now; the pods came before.
        (GpuUnit("L4", "share", per_gpu=4), False, "2 GPUs"),
        (GpuUnit("L4"), True, "2 shares of a GPU"),
    ],
)
def test_gpus_of_pods_are_named_as_what_they_have(unit: GpuUnit, shares: bool, words: str) -> None:
    on = {"dev": Usage(pods=1, gpus=2, shares=shares)}
    occupant = Occupant("ann", "berth", "berth-ann", "ann", "", on)
    fleet = PlannedFleet("env", {}, {}, [occupant], gpu_units={"dev": unit})
    (sitting,) = sitting_on(fleet, ["dev"])
    assert str(sitting) == f"berth ann (1 pod, {words})"
