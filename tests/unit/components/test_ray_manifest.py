from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from components.ray.manifest import dashboard_service, ray_cluster
from stacks.load import load
from stacks.settings.environment import EnvironmentSettings
from stacks.settings.pools import Pools
from stacks.settings.ray import RayClusterSettings
from stacks.settings.resolve import resolve_environment

POOLS = {
    "cpu": {"machineType": "n2-standard-16", "nodes": 1},
    "a4": {"machineType": "a4-highgpu-8g", "nodes": 2, "taints": [{"key": "team", "value": "ml"}]},
}


WAIVED = {"ray-auth": "a test", "private-dashboard": "a test"}


def complete(kind: str, shape: dict[str, Any]) -> tuple[RayClusterSettings, Pools]:
    values = {"project": "berth-lab", "zone": "us-central1-b", "pools": POOLS, kind: {"x": shape}}
    settings = load("test", {"environment": values | {"policies": {"waived": WAIVED}}}, None)
    assert isinstance(settings, EnvironmentSettings)
    resolved = resolve_environment(settings)
    (cluster,) = [*resolved.berths, *resolved.clusters]
    return cluster, resolved.pools


def manifest(kind: str, shape: dict[str, Any]) -> dict[str, Any]:
    return ray_cluster(*complete(kind, shape), "berth-x", {"berth/engineer": "x"})


@pytest.mark.parametrize(
    ("name", "kind", "shape"),
    [
        ("berth-of-all-defaults", "engineers", {}),
        ("berth-without-gpus", "engineers", {"worker": {"gpus": 0, "pool": "cpu"}, "env": {"LOG": "1"}}),
        ("berth-that-autoscales", "engineers", {"workers": {"min": 0, "max": 3}, "worker": {"gpus": 2}}),
        ("cluster-of-whole-nodes", "clusters", {"workers": 2}),
        ("berth-without-authentication", "engineers", {"auth": "none"}),
    ],
)
def test_manifest(golden: Callable[[str, Any], None], name: str, kind: str, shape: dict[str, Any]) -> None:
    golden(f"ray/{name}", manifest(kind, shape))


@pytest.mark.parametrize("dashboard", ["internal", "public"])
def test_a_head_that_is_reached_from_outside_has_a_load_balancer(
    golden: Callable[[str, Any], None], dashboard: str
) -> None:
    cluster, _ = complete("engineers", {"dashboard": dashboard})
    golden(f"ray/dashboard-{dashboard}", dashboard_service(cluster, "berth-x", {"berth/engineer": "x"}))


@pytest.mark.parametrize("dashboard", ["private", "internal", "public"])
def test_kuberays_own_service_stays_in_the_cluster(dashboard: str) -> None:
    spec = manifest("engineers", {"dashboard": dashboard})["spec"]
    assert not {"serviceType", "headService", "enableIngress"} & spec["headGroupSpec"].keys()


def test_a_private_head_has_no_load_balancer() -> None:
    assert dashboard_service(complete("engineers", {})[0], "berth-x", {}) is None


def test_limits_equal_requests_in_every_container() -> None:
    spec = manifest("clusters", {})["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        for container in group["template"]["spec"]["containers"]:
            assert container["resources"]["limits"] == container["resources"]["requests"]


def test_only_pods_that_ask_for_gpus_see_any() -> None:
    spec = manifest("engineers", {})["spec"]
    head, worker = spec["headGroupSpec"], spec["workerGroupSpecs"][0]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in head["template"]["spec"]["containers"][0]["env"]
    assert worker["template"]["spec"]["containers"][0]["env"] == []
    assert "nvidia.com/gpu" not in head["template"]["spec"]["containers"][0]["resources"]["limits"]
