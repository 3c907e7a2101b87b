"""Machines that a plan takes from reservations (reserved.yaml)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from berth.components.gke.effects.reserved import ReservedGrowth, reserved_growth
from berth.components.plan.plan import plan_of
from tests.unit.cases import table
from tests.unit.components.plan.plans import POOL, Inputs, event, pool

CASES = table(__file__, "reserved.yaml")
ZONES = "projects/owner/zones/"


def reserved_pool(
    name: str = "a4", zones: Sequence[str] = ("b",), below: str = "", **size: Any
) -> Inputs:
    """Inputs of a pool whose machines are of a reservation."""
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "values": [f"projects/owner/reservations/{name}{below}"],
    }
    inputs = pool(reservationAffinity=affinity) | {"nodeLocations": zones}
    del inputs["nodeCount"]
    return inputs | size


def growth(case: Mapping[str, Any]) -> Sequence[ReservedGrowth]:
    before = reserved_pool(**case["before"]) if "before" in case else None
    after = reserved_pool(**case["after"]) if "after" in case else None
    found = (before or {}) | case.get("found", {})
    operations = case.get("operations", ["update" if before else "create"])
    events = [event(operation, POOL, "train", before, after, found) for operation in operations]
    return reserved_growth(plan_of(events).steps)


@pytest.mark.parametrize("name", CASES)
def test_what_a_plan_takes_from_reservations(name: str) -> None:
    found = {entry.path.removeprefix(ZONES): entry.more for entry in growth(CASES[name])}
    assert found == CASES[name].get("more", {})


def test_pools_that_share_a_reservation_are_counted_together() -> None:
    events = [
        event("create", POOL, name, None, reserved_pool(nodeCount=2)) for name in ("train", "eval")
    ]
    assert reserved_growth(plan_of(events).steps) == [
        ReservedGrowth(f"{ZONES}b/reservations/a4", "a4-highgpu-8g", 4, ("train", "eval"))
    ]


@pytest.mark.parametrize("kind", ["NO_RESERVATION", "ANY_RESERVATION"])
def test_a_pool_without_a_reservation_of_its_own_takes_from_none(kind: str) -> None:
    inputs = pool(reservationAffinity={"consumeReservationType": kind}) | {"nodeLocations": ["b"]}
    assert reserved_growth(plan_of([event("create", POOL, "train", None, inputs)]).steps) == []
