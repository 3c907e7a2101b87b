"""Sharing profiles: what is refused, what a pool offers, what berth warns of."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from berth.stacks.load.stack import SettingsError, load
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_environment
from berth.stacks.settings.resolved import Resolved

TIME_SLICING: dict[str, Any] = {"kind": "time-slicing", "replicas": 4}
SINGLE_MIG: dict[str, Any] = {"kind": "mig", "strategy": "single", "profile": "1g.23gb"}


def environment(profile: dict[str, Any], pool: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "sharing": {"any": profile},
        "pools": {
            "cpu": {"machineType": "n2-standard-128", "nodes": 2},
            "dev": {"machineType": "a4-highgpu-8g", "nodes": 1, "capacity": "spot", "sharing": "any"} | (pool or {}),
        },
    } | more


def problems(values: dict[str, Any]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load("test", {"environment": values}, None)
    return caught.value.lines


def resolved(values: dict[str, Any]) -> Resolved:
    settings = load("test", {"environment": values}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    return resolve_environment(settings)


def engineer(**worker: Any) -> dict[str, Any]:
    return {"engineers": {"alice": {"worker": worker}}}


REFUSED = {
    "too few replicas": (
        environment({"kind": "time-slicing", "replicas": 1}),
        "environment.sharing.any.replicas: input should be greater than or equal to 2 (given: 1)",
    ),
    "no replicas": (environment({"kind": "mps"}), "environment.sharing.any.replicas: is required"),
    "MPS with MIG": (
        environment({"kind": "mps", "replicas": 2, "profile": "1g.23gb"}),
        "environment.sharing.any: MPS does not work on MIG instances",
    ),
    "time-slicing with MIG": (
        environment({"kind": "time-slicing", "replicas": 2, "strategy": "single"}),
        "strategy and profile belong to MIG; a profile of shares has neither",
    ),
    "MIG with replicas": (
        environment(SINGLE_MIG | {"replicas": 2}),
        "replicas, renameByDefault and failRequestsGreaterThanOne belong to shares; a mig profile has none of them",
    ),
    "MIG without a profile": (
        environment({"kind": "mig", "strategy": "single"}),
        "environment.sharing.any.profile: is required",
    ),
    "a flag of time-slicing for MPS": (
        environment({"kind": "mps", "replicas": 2, "failRequestsGreaterThanOne": True}),
        "failRequestsGreaterThanOne belongs to time-slicing; MPS always refuses such requests",
    ),
    "MIG on a GPU that has none": (
        environment(SINGLE_MIG, {"machineType": "g2-standard-8"}),
        "environment.pools.dev.sharing: L4 (g2-standard-8) has no MIG; share it by time-slicing or MPS",
    ),
    "a mode that berth does not know": (
        environment({"kind": "mpz", "replicas": 2}),
        "environment.sharing.any.kind: 'mpz' is not one of 'none', 'time-slicing', 'mps', 'mig'",
    ),
    "a profile without a mode": (
        environment({"replicas": 2}),
        "environment.sharing.any.kind: is required",
    ),
    "replicas of whole GPUs": (
        environment({"kind": "none", "replicas": 2}),
        "environment.sharing.any: whole GPUs have no other keys than `kind`",
    ),
    "a MIG profile that the GPU lacks": (
        environment(SINGLE_MIG | {"profile": "1g.10gb"}),
        "environment.pools.dev.sharing: B200 has no MIG profile 1g.10gb",
    ),
    "a profile that doesn't exist": (
        environment(TIME_SLICING, {"sharing": "ayn"}),
        "environment.pools.dev.sharing: there is no sharing profile 'ayn'; did you mean 'any'?",
    ),
    "sharing a pool without GPUs": (
        environment(TIME_SLICING, {"machineType": "n2-standard-16"}),
        "environment.pools.dev.sharing: n2-standard-16 has no GPUs; take this line out",
    ),
    "sharing a pool that is left to GKE": (
        environment(TIME_SLICING, {"gpuManagement": "gke"}),
        "environment.pools.dev.gpuManagement: GKE's own device plugin does not read berth's sharing profiles",
    ),
    "the operator's driver on COS": (
        environment(TIME_SLICING, {"driver": "operator"}),
        "environment.pools.dev.driver: the GPU Operator cannot install a driver on Container-Optimized OS",
    ),
    "the operator's driver on a pool of GKE's": (
        environment(TIME_SLICING, {"sharing": None, "driver": "operator", "nodeImage": "ubuntu"}),
        "environment.pools.dev.driver: the pool is left to GKE; set `gpuManagement: operator`, or `driver: gke`",
    ),
    "sharing on a pool with RDMA, whose NICs are DRA's": (
        environment(TIME_SLICING, {"rdma": "managed"}),
        "environment.pools.dev.sharing: Google does not support shared GPUs on nodes whose NICs are handed out by DRA",
    ),
    "RDMA on a machine without": (
        environment(TIME_SLICING, {"rdma": "managed", "machineType": "a2-highgpu-8g"}),
        (
            "environment.pools.dev.rdma: a2-highgpu-8g has no RDMA NICs; those that have them are "
            "a4-highgpu-8g, a3-ultragpu-8g"
        ),
    ),
    "RDMA on Ubuntu": (
        environment(TIME_SLICING, {"rdma": "managed", "nodeImage": "ubuntu"}),
        "environment.pools.dev.rdma: RDMA on GKE needs Container-Optimized OS; take `nodeImage` out",
    ),
    "Google's installer on Ubuntu": (
        environment(TIME_SLICING, {"nodeImage": "ubuntu"}),
        (
            "environment.pools.dev.driver: Google's installer for a pool that the GPU Operator serves is "
            "for Container-Optimized OS"
        ),
    ),
    "a version that is known to be bad": (
        environment(TIME_SLICING, operators={"gpu": {"version": "v26.3.2"}}),
        "environment.operators.gpu.version: v26.3.2 injects all ibverbs devices into every pod with a GPU",
    ),
    "more than one share where one is the limit": (
        environment(TIME_SLICING | {"failRequestsGreaterThanOne": True}, **engineer(gpus=2)),
        (
            "environment.engineers.alice.worker.gpus: a worker asks for 2 shares of pool 'dev', whose "
            "profile refuses more than one"
        ),
    ),
    "more than one share of MPS": (
        environment({"kind": "mps", "replicas": 4}, **engineer(gpus=2)),
        "MPS gives a pod one share",
    ),
    "whole GPUs of a pool that renames them": (
        environment(TIME_SLICING | {"renameByDefault": True}, **engineer(gpuResource="nvidia.com/gpu")),
        (
            "environment.engineers.alice.worker.gpuResource: pool 'dev' does not advertise "
            "nvidia.com/gpu, but nvidia.com/gpu.shared"
        ),
    ),
    "shared GPUs of a pool that doesn't rename them": (
        environment(TIME_SLICING, **engineer(gpuResource="nvidia.com/gpu.shared")),
        "pool 'dev' does not advertise nvidia.com/gpu.shared, but nvidia.com/gpu;",
    ),
    "whole GPUs of a pool of MIG instances": (
        environment(SINGLE_MIG | {"strategy": "mixed"}, **engineer(gpuResource="nvidia.com/gpu")),
        "pool 'dev' does not advertise nvidia.com/gpu, but nvidia.com/mig-1g.23gb",
    ),
    "a cluster of whole nodes on shared GPUs": (
        environment(TIME_SLICING, clusters={"train": {}}),
        "environment.clusters.train.worker.pool: a cluster's worker takes a whole node, but pool 'dev' shares its GPUs",
    ),
    "the 33rd of 32 shares": (
        environment(TIME_SLICING, engineers={f"eng-{number}": {} for number in range(33)}),
        "pool 'dev' tops out at 32 shares (1 × a4-highgpu-8g with 8 GPUs, each shared by 4)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_reason_and_remedy(case: str) -> None:
    values, expected = REFUSED[case]
    lines = problems(values)
    assert any(expected in line for line in lines), lines


def test_pools_that_differ_in_what_is_one_setting_for_the_cluster() -> None:
    values = environment(SINGLE_MIG)
    values["sharing"]["other"] = SINGLE_MIG | {"strategy": "mixed"}
    values["pools"]["two"] = {
        "machineType": "a4-highgpu-8g",
        "nodes": 1,
        "sharing": "other",
        "nodeImage": "ubuntu",
        "driver": "operator",
    }
    lines = problems(values)
    assert any("pools dev and two use MIG with different strategies" in line for line in lines), lines
    assert any("pools dev and two differ in whether the GPU Operator installs the driver" in line for line in lines), (
        lines
    )


@pytest.mark.parametrize(
    ("profile", "resource", "per_node", "gib"),
    [
        ({"kind": "none"}, "nvidia.com/gpu", 8, 180),
        (TIME_SLICING, "nvidia.com/gpu", 32, 45),
        (TIME_SLICING | {"renameByDefault": True}, "nvidia.com/gpu.shared", 32, 45),
        ({"kind": "mps", "replicas": 2}, "nvidia.com/gpu", 16, 90),
        (SINGLE_MIG, "nvidia.com/gpu", 56, 23),
        (SINGLE_MIG | {"strategy": "mixed", "profile": "3g.90gb"}, "nvidia.com/mig-3g.90gb", 16, 90),
    ],
)
def test_what_a_pool_offers(profile: dict[str, Any], resource: str, per_node: int, gib: int) -> None:
    offer = resolved(environment(profile)).pools["dev"].offer
    assert offer is not None
    assert (offer.resource, offer.per_node, offer.memory_gib) == (resource, per_node, Decimal(gib))


def test_a_berth_asks_for_what_its_pool_advertises() -> None:
    (berth,) = resolved(environment(TIME_SLICING | {"renameByDefault": True}, **engineer())).berths
    (group,) = berth.groups
    assert (group.gpu_resource, group.gpus) == ("nvidia.com/gpu.shared", 1)


def test_a_need_of_memory_beyond_the_share_is_warned_of_and_not_refused() -> None:
    found = resolved(environment(TIME_SLICING, **engineer(gpuMemory="60Gi")))
    assert found.problems == []
    (warning,) = found.warnings
    assert warning.where == "environment.engineers.alice.worker.gpuMemory"
    assert warning.message.startswith("a worker needs 60Gi of GPU memory, but a share of pool 'dev' (B200) is 45Gi")
    assert "does not isolate memory" in warning.message
    assert resolved(environment(TIME_SLICING, **engineer(gpuMemory="45Gi"))).warnings == []


def test_keys_of_other_modes_that_are_switched_off_are_accepted_as_older_versions_wrote_them() -> None:
    found = resolved(environment(SINGLE_MIG | {"renameByDefault": False, "failRequestsGreaterThanOne": False}))
    assert found.problems == []
