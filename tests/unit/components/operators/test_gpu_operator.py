"""The GPU Operator's values and the device plugin's config, held to the real chart where its
data is at hand.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.operators import DriverInstaller, GpuOperator, Site
from berth.components.operators.driver_installer import driver_installer
from berth.components.operators.gpu_operator import quota_for_daemons
from berth.components.ray.manifest import ray_cluster
from berth.components.sharing import node_labels
from berth.stacks.settings.resolve import resolve_environment
from berth.stacks.settings.resolved import Resolved
from tests.unit.loaded import environment_of

UPSTREAM = Path(__file__).resolve().parents[5] / "shared" / "upstream" / "gpu-operator"

TIME_SLICING: dict[str, Any] = {"kind": "time-slicing", "replicas": 4}
GPU_POOL: dict[str, Any] = {"machineType": "a4-highgpu-8g", "nodes": 1}


def fleet(
    pool: dict[str, Any], profile: dict[str, Any] = TIME_SLICING, **more: Any
) -> tuple[Resolved, GpuOperator]:
    environment = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "sharing": {"any": profile},
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}, "dev": GPU_POOL | pool},
    } | more
    settings = environment_of("test", environment).settings
    resolved = resolve_environment(settings)
    return resolved, GpuOperator(settings.operators.gpu, Site(resolved.pools))


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "time-slicing-on-cos": ({"sharing": "any"}, TIME_SLICING, {}),
    "mps-on-cos": ({"sharing": "any"}, {"kind": "mps", "replicas": 2, "renameByDefault": True}, {}),
    "mig-mixed-on-cos": (
        {"sharing": "any"},
        {"kind": "mig", "strategy": "mixed", "profile": "1g.23gb"},
        {},
    ),
    "tainted-on-cos": (
        {
            "sharing": "any",
            "taints": [
                {"key": "dedicated", "value": "ml"},
                {"key": "night", "effect": "NoExecute"},
            ],
        },
        TIME_SLICING,
        {},
    ),
    "whole-on-ubuntu": (
        {"gpuManagement": "operator", "driver": "operator", "nodeImage": "ubuntu"},
        TIME_SLICING,
        {
            "operators": {
                "gpu": {"dcgmExporter": True, "nodeFeatureDiscovery": False, "validator": False}
            }
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values(golden: Callable[[str, Any], None], case: str) -> None:
    pool, profile, more = CASES[case]
    golden(f"gpu-operator/{case}", fleet(pool, profile, **more)[1].values())


@pytest.mark.parametrize("case", CASES)
def test_every_value_exists_in_the_real_chart(case: str) -> None:
    if not UPSTREAM.is_dir():
        pytest.skip("the real chart's data (../shared/upstream/gpu-operator) is not at hand")
    pool, profile, more = CASES[case]
    sent = fleet(pool, profile, **more)[1].values()
    # Its only value is read by templates/clusterpolicy.yaml, and has no default in values.yaml.
    sent.pop("validator", None)
    assert unknown_values(sent, UPSTREAM / "values.yaml") == []


# Free-form in the charts: Kubernetes knows what may be in some, the ConfigMap's keys are berth's.
FREE = ("affinity", "tolerations", "nodeSelector", "data")


def unknown_values(values: dict[str, Any], chart: Path) -> list[tuple[str, ...]]:
    """Paths of values that a chart's values.yaml does not have."""
    real = yaml.safe_load(chart.read_text())
    return [path for path in _paths(values) if not _exists(real, path)]


def _paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and value and not (path and path[-1] in FREE):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    else:
        yield path


def _exists(real: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if not isinstance(real, dict) or key not in real:
            return False
        real = real[key]
    return True


def test_a_node_without_a_label_has_whole_gpus_and_shares_them_only_by_its_label() -> None:
    _, inputs = fleet({"sharing": "any"})
    config = inputs.values()["devicePlugin"]["config"]
    assert config["name"].startswith("time-slicing-config-all-")
    entries = {key: yaml.safe_load(text) for key, text in config["data"].items()}
    assert entries["any"] == {
        "version": "v1",
        "flags": {"migStrategy": "none"},
        "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}},
    }
    assert entries[config["default"]] == {"version": "v1", "flags": {"migStrategy": "none"}}


def test_a_changed_profile_is_another_config_map_since_edits_are_not_watched() -> None:
    names = {
        fleet({"sharing": "any"}, TIME_SLICING | {"replicas": replicas})[1].values()[
            "devicePlugin"
        ]["config"]["name"]
        for replicas in (2, 4)
    }
    assert len(names) == 2


def test_the_pools_own_config_carries_the_labels() -> None:
    resolved, _ = fleet(
        {"sharing": "any"}, {"kind": "mig", "strategy": "single", "profile": "1g.23gb"}
    )
    assert node_labels(resolved.pools["dev"]) == {
        "gke-no-default-nvidia-gpu-device-plugin": "true",
        "nvidia.com/device-plugin.config": "any",
        "nvidia.com/mig.config": "all-1g.23gb",
    }
    assert node_labels(resolved.pools["cpu"]) == {}


def test_a_pool_that_is_left_to_gke_needs_no_operator_and_keeps_one_off() -> None:
    resolved, _ = fleet({})
    assert GpuOperator.served(resolved.pools) == {}
    assert node_labels(resolved.pools["dev"]) == {"nvidia.com/gpu.deploy.operands": "false"}


def test_googles_installer_runs_where_gke_installs_no_driver() -> None:
    assert DriverInstaller.served(fleet({"sharing": "any"})[0].pools)
    assert not DriverInstaller.served(fleet({"sharing": "any", "driver": "preinstalled"})[0].pools)
    assert not DriverInstaller.served(
        fleet({"sharing": "any", "driver": "operator", "nodeImage": "ubuntu"})[0].pools
    )
    assert DriverInstaller.served(fleet({"gpuAllocation": "dra"})[0].pools)
    assert not DriverInstaller.served(
        fleet({"gpuAllocation": "dra", "driver": "preinstalled"})[0].pools
    )
    assert not DriverInstaller.served(fleet({})[0].pools)


def test_manifests(golden: Callable[[str, Any], None]) -> None:
    golden("gpu-operator/driver-installer", driver_installer())
    golden("gpu-operator/quota", quota_for_daemons("gpu-operator"))


@pytest.mark.parametrize(
    ("profile", "resource", "start"),
    [
        ({"kind": "none"}, "nvidia.com/gpu", {}),
        (TIME_SLICING, "nvidia.com/gpu", {"num-gpus": "1"}),
        (TIME_SLICING | {"renameByDefault": True}, "nvidia.com/gpu.shared", {"num-gpus": "1"}),
        (
            {"kind": "mig", "strategy": "mixed", "profile": "1g.23gb"},
            "nvidia.com/mig-1g.23gb",
            {"num-gpus": "1"},
        ),
    ],
)
def test_ray_is_told_of_gpus_that_kuberay_would_not_find(
    profile: dict[str, Any], resource: str, start: dict[str, str]
) -> None:
    resolved, _ = fleet({"sharing": "any"}, profile, engineers={"alice": {}})
    group = ray_cluster(resolved.berths[0], resolved.pools, "berth-alice", {})["spec"][
        "workerGroupSpecs"
    ][0]
    assert group["rayStartParams"] == start
    assert group["template"]["spec"]["containers"][0]["resources"]["limits"][resource] == "1"
