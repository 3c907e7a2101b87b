"""Limits of the disk of a node that a berth's containers use, by the sizes of its pools' nodes."""

from typing import Any

import pytest

from tests.unit.loaded import engineer_of, environment_of, environment_values

SSD = {"machineType": "n2-standard-16", "nodes": 1, "localSsds": {"count": 4}}
OF_CPUS = {"gpus": 0, "pool": "cpu"}
EXISTING = {
    "cluster": {"existing": {"kubeconfig": "kubeconfig"}},
    "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 2}},
}


def values_of(**settings: Any) -> dict[str, Any]:
    defaults = {"head": {"pool": "cpu"}}
    berth = {"engineers": {"alice": {"worker": OF_CPUS}}, "defaults": defaults}
    return environment_values(ssd=SSD) | berth | settings


def limits_of(berth: Any) -> tuple[str, str]:
    """Most disk of a container by the LimitRange, and of all containers by the ResourceQuota."""
    objects = {manifest["kind"]: manifest for manifest in berth.manifests.objects}
    (limits,) = objects["LimitRange"]["spec"]["limits"]
    assert limits["max"] == {"ephemeral-storage": limits["default"]["ephemeral-storage"]}
    hard = objects["ResourceQuota"]["spec"]["hard"]["limits.ephemeral-storage"]
    return limits["max"]["ephemeral-storage"], hard


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        # 97.4 GiB of a boot disk of 200 GB, for which the lab's node has 102152806Ki.
        ({}, "97Gi"),
        ({"engineers": {"alice": {"worker": {"gpus": 0, "pool": "ssd"}}}}, "500Gi"),
        ({"isolation": {"ephemeralStorage": "50Gi"}}, "50Gi"),
    ],
)
def test_a_container_uses_no_more_disk_than_the_largest_node_of_its_berth_has(
    settings: dict[str, Any], most: str
) -> None:
    loaded = environment_of("test", values_of(**settings))
    assert limits_of(loaded.berths[0])[0] == most


def test_nodes_of_an_existing_cluster_have_disks_of_any_size() -> None:
    existing = EXISTING | {"engineers": {"alice": {"worker": OF_CPUS}}}
    loaded = environment_of("test", existing)
    assert limits_of(loaded.berths[0])[0] == "500Gi"


def test_an_engineers_own_stack_has_the_limit_of_its_environment() -> None:
    contract = environment_of("test", values_of(engineers={})).contract()
    berth = engineer_of("alice", worker=OF_CPUS).on(contract).berth
    assert limits_of(berth)[0] == "97Gi"


def test_the_quota_counts_pods_with_the_limit_that_they_started_with() -> None:
    # Two pods and twenty more, each with the 500Gi of an earlier version.
    loaded = environment_of("test", values_of())
    assert limits_of(loaded.berths[0])[1] == f"{22 * 500 * 1024}Mi"
