from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from components.ray.manifest import ray_cluster
from stacks.load import load
from stacks.settings.environment import EnvironmentSettings
from stacks.settings.resolve import resolve_environment

POOLS = {
    "cpu": {"machineType": "n2-standard-16", "nodes": 1},
    "a4": {"machineType": "a4-highgpu-8g", "nodes": 2, "taints": [{"key": "team", "value": "ml"}]},
}


def manifest(kind: str, shape: dict[str, Any]) -> dict[str, Any]:
    values = {"project": "berth-lab", "zone": "us-central1-b", "pools": POOLS, kind: {"x": shape}}
    settings = load("test", {"environment": values}, None)
    assert isinstance(settings, EnvironmentSettings)
    resolved = resolve_environment(settings)
    (cluster,) = [*resolved.berths, *resolved.clusters]
    return ray_cluster(cluster, resolved.pools, "berth-x", {"berth/engineer": "x"})


@pytest.mark.parametrize(
    ("name", "kind", "shape"),
    [
        ("berth-of-all-defaults", "engineers", {}),
        ("berth-without-gpus", "engineers", {"worker": {"gpus": 0, "pool": "cpu"}, "env": {"LOG": "1"}}),
        ("berth-that-autoscales", "engineers", {"workers": {"min": 0, "max": 3}, "worker": {"gpus": 2}}),
        ("cluster-of-whole-nodes", "clusters", {"workers": 2}),
    ],
)
def test_manifest(golden: Callable[[str, Any], None], name: str, kind: str, shape: dict[str, Any]) -> None:
    golden(f"ray/{name}", manifest(kind, shape))


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
