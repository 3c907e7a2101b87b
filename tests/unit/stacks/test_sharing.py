"""Sharing profiles: what a pool offers, and what a berth requests of it."""

from decimal import Decimal
from typing import Any

import pytest

from berth.stacks.settings.resolve import resolve_environment
from berth.stacks.settings.resolved import Resolved
from tests.unit.loaded import environment_of

TIME_SLICING: dict[str, Any] = {"kind": "time-slicing", "replicas": 4}
SINGLE_MIG: dict[str, Any] = {"kind": "mig", "strategy": "single", "profile": "1g.23gb"}


def environment(
    profile: dict[str, Any], pool: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "sharing": {"any": profile},
        "pools": {
            "cpu": {"machineType": "n2-standard-128", "nodes": 2},
            "dev": {
                "machineType": "a4-highgpu-8g",
                "nodes": 1,
                "capacity": "spot",
                "sharing": "any",
            }
            | (pool or {}),
        },
    } | more


def resolved(values: dict[str, Any]) -> Resolved:
    settings = environment_of("test", values).settings
    return resolve_environment(settings)


def engineer(**worker: Any) -> dict[str, Any]:
    return {"engineers": {"alice": {"worker": worker}}}


@pytest.mark.parametrize(
    ("profile", "resource", "per_node", "gib"),
    [
        ({"kind": "none"}, "nvidia.com/gpu", 8, 180),
        (TIME_SLICING, "nvidia.com/gpu", 32, 45),
        (TIME_SLICING | {"renameByDefault": True}, "nvidia.com/gpu.shared", 32, 45),
        ({"kind": "mps", "replicas": 2}, "nvidia.com/gpu", 16, 90),
        (SINGLE_MIG, "nvidia.com/gpu", 56, 23),
        (
            SINGLE_MIG | {"strategy": "mixed", "profile": "3g.90gb"},
            "nvidia.com/mig-3g.90gb",
            16,
            90,
        ),
    ],
)
def test_what_a_pool_offers(
    profile: dict[str, Any], resource: str, per_node: int, gib: int
) -> None:
    offer = resolved(environment(profile)).pools["dev"].offer
    assert offer is not None
    assert (offer.resource, offer.per_node, offer.memory_gib) == (resource, per_node, Decimal(gib))


def test_a_berth_asks_for_what_its_pool_advertises() -> None:
    (berth,) = resolved(environment(TIME_SLICING | {"renameByDefault": True}, **engineer())).berths
    (group,) = berth.groups
    assert (group.gpu_resource, group.gpus) == ("nvidia.com/gpu.shared", 1)
