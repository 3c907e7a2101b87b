from __future__ import annotations

from typing import Any

import pytest

from lab.devices.advertised import GPU
from lab.devices.gpu_operator import MigError, Policy, instances, obstacle, serve, served
from lab.devices.plugin_config import PluginConfig

NODE = {
    "cloud.google.com/gke-accelerator": "nvidia-b200",
    "cloud.google.com/gke-accelerator-count": "8",
    "gke-no-default-nvidia-gpu-device-plugin": "true",
}
L4 = NODE | {"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-accelerator-count": "1"}
COS = NODE | {"cloud.google.com/gke-os-distribution": "cos"}
GKE_DRIVER = {"cloud.google.com/gke-gpu-driver-version": "latest"}
PREINSTALLED = {"berth/driver": "preinstalled"}
ON_COS = {
    "driver": {"enabled": False},
    "hostPaths": {"driverInstallDir": "/home/kubernetes/bin/nvidia"},
    "toolkit": {"installDir": "/home/kubernetes/bin/nvidia"},
}
WHOLE = PluginConfig()
SLICED = PluginConfig("", "time-slicing", {GPU: 4})


def without(**changes: Any) -> Policy:
    return Policy(ON_COS | changes)


@pytest.mark.parametrize(
    ("labels", "ours"),
    [
        (NODE, True),
        (NODE | {"gke-no-default-nvidia-gpu-device-plugin": "false"}, False),
        (NODE | {"nvidia.com/gpu.deploy.operands": "false"}, False),
        ({"gke-no-default-nvidia-gpu-device-plugin": "true"}, False),
    ],
)
def test_the_operator_serves_nodes_with_gpus_that_are_not_gkes(labels: dict[str, str], *, ours: bool) -> None:
    assert served(labels) is ours


@pytest.mark.parametrize(
    ("labels", "spec", "installer", "words"),
    [
        (NODE, {"driver": {"enabled": True}}, False, ""),
        (NODE, {}, False, ""),
        (NODE, {"driver": {"enabled": False}}, False, "no NVIDIA driver: GKE installs none"),
        (NODE, {"driver": {"enabled": False}}, True, ""),
        (NODE | GKE_DRIVER, {"driver": {"enabled": False}}, False, ""),
        (NODE | PREINSTALLED, {"driver": {"enabled": False}}, False, ""),
        (COS, {"driver": {"enabled": True}}, False, "no driver image for Container-Optimized OS"),
        (COS, ON_COS, True, ""),
        (COS | GKE_DRIVER, ON_COS, False, ""),
        (COS, ON_COS | {"hostPaths": {}}, True, r"no NVIDIA driver in /run/nvidia/driver: Google's is in /home"),
        (COS, ON_COS | {"toolkit": {}}, True, r"cannot be installed in /usr/local/nvidia: it is read-only"),
        (COS, ON_COS | {"toolkit": {"enabled": False}}, True, ""),
    ],
)
def test_operands_wait_for_a_driver_that_they_find(
    labels: dict[str, str], spec: dict[str, Any], words: str, *, installer: bool
) -> None:
    found = obstacle(labels, Policy(spec), installer=installer)
    assert words in found
    assert bool(words) is bool(found)


@pytest.mark.parametrize(
    ("labels", "spec", "mig"),
    [
        (NODE, {}, {}),
        (NODE | {"nvidia.com/mig.config": "all-disabled"}, {}, {}),
        (NODE | {"nvidia.com/mig.config": "all-1g.23gb"}, {}, {"1g.23gb": 7}),
        (NODE | {"nvidia.com/mig.config": "all-3g.90gb"}, {}, {"3g.90gb": 2}),
        (NODE | {"nvidia.com/mig.config": "all-balanced"}, {}, {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1}),
        (NODE, {"migManager": {"config": {"default": "all-7g.180gb"}}}, {"7g.180gb": 1}),
        (NODE | {"nvidia.com/mig.config": "all-1g.23gb"}, {"migManager": {"enabled": False}}, {}),
        (L4 | {"nvidia.com/mig.config": "all-1g.23gb"}, {}, {}),
    ],
)
def test_gpus_are_cut_as_the_nodes_label_says(
    labels: dict[str, str], spec: dict[str, Any], mig: dict[str, int]
) -> None:
    assert instances(labels, Policy(spec)) == mig


@pytest.mark.parametrize("wanted", ["all-1g.10gb", "1g.23gb", "custom"])
def test_a_gpu_is_not_cut_in_a_way_that_it_does_not_have(wanted: str) -> None:
    with pytest.raises(MigError, match=rf"{wanted}: NVIDIA B200 has no such MIG configuration; it has all-1g\.23gb"):
        instances(NODE | {"nvidia.com/mig.config": wanted}, Policy({}))


@pytest.mark.parametrize(
    ("config", "strategy", "mig", "resources"),
    [
        (WHOLE, "single", {}, {GPU: 8}),
        (SLICED, "single", {}, {GPU: 32}),
        (PluginConfig("", "time-slicing", {GPU: 4}, renamed=True), "none", {}, {f"{GPU}.shared": 32}),
        (PluginConfig("", "mps", {GPU: 2}, single=True), "single", {}, {GPU: 16}),
        (PluginConfig("", "time-slicing", {"nvidia.com/mig-1g.23gb": 4}), "single", {}, {GPU: 8}),
        (WHOLE, "single", {"1g.23gb": 7}, {GPU: 56}),
        (SLICED, "single", {"1g.23gb": 7}, {GPU: 224}),
        (WHOLE, "mixed", {"1g.23gb": 7}, {"nvidia.com/mig-1g.23gb": 56}),
        (
            WHOLE,
            "mixed",
            {"1g.23gb": 2, "2g.45gb": 1},
            {"nvidia.com/mig-1g.23gb": 16, "nvidia.com/mig-2g.45gb": 8},
        ),
        (
            PluginConfig("", "time-slicing", {"nvidia.com/mig-1g.23gb": 2}, renamed=True),
            "mixed",
            {"1g.23gb": 7},
            {"nvidia.com/mig-1g.23gb.shared": 112},
        ),
        (WHOLE, "mixed", {}, {GPU: 8}),
        (WHOLE, "none", {"1g.23gb": 7}, {GPU: 8}),
        (PluginConfig("mixed"), "", {"7g.180gb": 1}, {"nvidia.com/mig-7g.180gb": 8}),
        (PluginConfig("mixed"), "single", {"7g.180gb": 1}, {GPU: 8}),
    ],
)
def test_devices_follow_sharing_and_mig(
    config: PluginConfig, strategy: str, mig: dict[str, int], resources: dict[str, int]
) -> None:
    found = serve(NODE, without(mig={"strategy": strategy}), config, mig)
    assert (found.resources, found.problem) == (resources, "")


@pytest.mark.parametrize(
    ("config", "strategy", "mig", "problem"),
    [
        (PluginConfig("", "mps", {GPU: 2}), "mixed", {}, "using --mig-strategy=mixed is not supported with MPS"),
        (PluginConfig("", "mps", {GPU: 2}), "single", {"1g.23gb": 7}, "sharing using MPS is not supported for MIG"),
        (WHOLE, "single", {"1g.23gb": 2, "2g.45gb": 1}, "more than one MIG device type present on node"),
        (PluginConfig("both"), "", {}, "unknown MIG strategy: both"),
    ],
)
def test_the_plugin_refuses_combinations(
    config: PluginConfig, strategy: str, mig: dict[str, int], problem: str
) -> None:
    found = serve(NODE, without(mig={"strategy": strategy}), config, mig)
    assert problem in found.problem
    assert found.resources == {}


def labels_of(
    config: PluginConfig, cut: dict[str, int] | None = None, node: dict[str, str] = NODE, **spec: Any
) -> dict[str, str]:
    return dict(serve(node, without(**spec), config, cut or {}).labels)


def test_labels_of_whole_gpus_are_those_that_the_driver_reports() -> None:
    assert labels_of(WHOLE, node=L4) == {
        "nvidia.com/gpu.compute.major": "8",
        "nvidia.com/gpu.compute.minor": "9",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.family": "ada-lovelace",
        "nvidia.com/gpu.machine": "Google-Compute-Engine",
        "nvidia.com/gpu.memory": "23034",
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.product": "NVIDIA-L4",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "false",
        "nvidia.com/mps.capable": "false",
    }


@pytest.mark.parametrize(
    ("config", "product", "replicas", "strategy"),
    [
        (WHOLE, "NVIDIA-B200", "1", "none"),
        (SLICED, "NVIDIA-B200-SHARED", "4", "time-slicing"),
        (PluginConfig("", "time-slicing", {GPU: 4}, renamed=True), "NVIDIA-B200", "4", "time-slicing"),
        (PluginConfig("", "mps", {GPU: 2}), "NVIDIA-B200-SHARED", "2", "mps"),
    ],
)
def test_labels_say_how_gpus_are_shared(config: PluginConfig, product: str, replicas: str, strategy: str) -> None:
    found = labels_of(config)
    assert found[f"{GPU}.product"] == product
    assert found[f"{GPU}.replicas"] == replicas
    assert found[f"{GPU}.sharing-strategy"] == strategy
    assert found[f"{GPU}.count"] == "8"


def test_labels_of_instances_stand_under_the_gpus_name_with_the_strategy_single() -> None:
    found = labels_of(WHOLE, {"1g.23gb": 7}, mig={"strategy": "single"})
    assert found[f"{GPU}.product"] == "NVIDIA-B200-MIG-1g.23gb"
    assert (found[f"{GPU}.count"], found[f"{GPU}.slices.gi"]) == ("56", "1")
    assert f"{GPU}.memory" not in found
    assert found["nvidia.com/mig.strategy"] == "single"


def test_labels_of_instances_stand_under_each_profile_with_the_strategy_mixed() -> None:
    found = labels_of(WHOLE, {"1g.23gb": 2, "3g.90gb": 1}, mig={"strategy": "mixed"})
    assert found["nvidia.com/mig-1g.23gb.count"] == "16"
    assert found["nvidia.com/mig-3g.90gb.product"] == "NVIDIA-B200-MIG-3g.90gb"
    assert (found[f"{GPU}.product"], found[f"{GPU}.count"], found[f"{GPU}.replicas"]) == ("NVIDIA-B200", "8", "0")


def test_labels_of_a_layout_that_single_cannot_show_say_so() -> None:
    found = labels_of(WHOLE, {"1g.23gb": 2, "3g.90gb": 1}, mig={"strategy": "single"})
    assert (found[f"{GPU}.product"], found[f"{GPU}.count"]) == ("NVIDIA-B200-MIG-INVALID", "0")


def test_the_drivers_version_is_known_where_the_operator_installs_it() -> None:
    found = labels_of(WHOLE, driver={"enabled": True, "version": "595.91.07"})
    assert found["nvidia.com/cuda.driver-version.full"] == "595.91.07"
    assert found["nvidia.com/cuda.driver-version.revision"] == "07"
    assert "nvidia.com/cuda.driver-version.full" not in labels_of(WHOLE)


def test_without_feature_discovery_there_are_devices_and_no_labels() -> None:
    found = serve(NODE, without(gfd={"enabled": False}), WHOLE, {})
    assert (found.resources, found.labels) == ({GPU: 8}, {})


def test_only_shared_resources_are_given_one_at_a_time() -> None:
    strict = PluginConfig("", "time-slicing", {GPU: 4}, renamed=True, single=True)
    assert serve(NODE, without(), strict, {}).single == {f"{GPU}.shared"}
    assert serve(NODE, without(), SLICED, {}).single == frozenset()
