from typing import Any

import pytest

from berth.components.hardware.machines import GPUS
from berth.components.hardware.names import GPU_RESOURCE as GPU
from berth.lab.devices.gpu_operator import OperatorPolicy
from berth.lab.devices.gpus import cut, layouts, state_of, status_change
from berth.lab.devices.node_features import found
from berth.lab.devices.operand_objects import DRIVER, OPERANDS, PLUGIN, TOOLKIT, daemonset
from berth.lab.devices.operands import blocked, features, serve
from berth.lab.devices.plugin_config import PluginConfig

NODE = {
    "cloud.google.com/gke-accelerator": "nvidia-b200",
    "cloud.google.com/gke-accelerator-count": "8",
    "gke-no-default-nvidia-gpu-device-plugin": "true",
}
L4 = NODE | {
    "cloud.google.com/gke-accelerator": "nvidia-l4",
    "cloud.google.com/gke-accelerator-count": "1",
}
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


OWNER = {
    "apiVersion": "nvidia.com/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "cluster-policy", "uid": "p"},
}


def specs(spec: dict[str, Any]) -> dict[str, Any]:
    """Spec of a pod of each DaemonSet that a ClusterPolicy with this spec has."""
    policy = OperatorPolicy(spec)
    operands = [operand for operand in OPERANDS if operand.on(policy)]
    sets = {
        operand.name: daemonset(operand, policy, OWNER, "gpu-operator", "cos125")
        for operand in operands
    }
    return {name: entry["spec"]["template"]["spec"] for name, entry in sets.items()}


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
        (
            COS,
            ON_COS | {"hostPaths": {}},
            True,
            r"no NVIDIA driver in /run/nvidia/driver: Google's is in /home",
        ),
        ({}, ON_COS, True, "the machine has no GPU"),
    ],
)
def test_the_toolkit_waits_for_a_driver_and_the_others_for_the_toolkit(
    labels: dict[str, str], spec: dict[str, Any], words: str, *, installer: bool
) -> None:
    holds = blocked(labels, specs(spec), installer=installer)
    if not words:
        assert holds == {}
        return
    assert words in holds[TOOLKIT].message
    assert 'no runtime for "nvidia" is configured' in holds[PLUGIN].message
    assert set(holds) == set(specs(spec)) - {DRIVER}


def test_without_the_toolkit_no_pod_has_its_runtime_class() -> None:
    holds = blocked(NODE, specs({"toolkit": {"enabled": False}}), installer=False)
    assert "no container toolkit on the node" in holds[PLUGIN].message


def test_the_layouts_are_mig_parteds() -> None:
    balanced = {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}
    assert layouts(GPUS["nvidia-h200-141gb"])["all-balanced"] == balanced
    assert layouts(GPUS["nvidia-l4"]) == {"all-disabled": {}}


@pytest.mark.parametrize(
    ("layout", "state", "instances"),
    [
        ("all-7g.180gb", "success", {"7g.180gb": 1}),
        ("all-disabled", "success", {}),
        ("all-1g.10gb", "failed", {}),
    ],
)
def test_a_gpu_is_not_cut_in_a_way_that_it_does_not_have(
    layout: str, state: str, instances: dict[str, int]
) -> None:
    labels = NODE | {"nvidia.com/mig.config": layout}
    assert state_of(labels) == state
    assert cut(labels | {"nvidia.com/mig.config.state": state}) == instances
    assert cut(labels) == {}


@pytest.mark.parametrize(
    ("config", "strategy", "mig", "resources"),
    [
        (WHOLE, "single", {}, {GPU: 8}),
        (SLICED, "single", {}, {GPU: 32}),
        (
            PluginConfig("", "time-slicing", {GPU: 4}, renamed=True),
            "none",
            {},
            {f"{GPU}.shared": 32},
        ),
        (PluginConfig("", "mps", {GPU: 2}), "single", {}, {GPU: 16}),
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
    ],
)
def test_devices_follow_sharing_and_mig(
    config: PluginConfig, strategy: str, mig: dict[str, int], resources: dict[str, int]
) -> None:
    assert serve(NODE, strategy, config, mig) == resources


def test_labels_of_whole_gpus_are_those_that_the_driver_reports() -> None:
    assert features(L4, "none", WHOLE, {}) == {
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


def test_a_resource_that_is_no_longer_advertised_goes() -> None:
    shown = {GPU: "8", "example.com/other": "1"}
    renamed = {f"{GPU}.shared": 16}
    change = {f"{GPU}.shared": "16", GPU: None}
    assert status_change(renamed, {"capacity": shown, "allocatable": shown}) == dict.fromkeys(
        ("capacity", "allocatable"), change
    )
    assert status_change({GPU: 8}, {"capacity": {GPU: "8"}, "allocatable": {GPU: "0"}}) == {
        "allocatable": {GPU: "8"}
    }


FEATURES = "feature.node.kubernetes.io/"


def test_a_cos_node_has_the_labels_that_the_recordings_give_one() -> None:
    recorded = {
        FEATURES + "pci-10de.present": "true",
        FEATURES + "kernel-version.full": "6.12.55",
        FEATURES + "system-os_release.ID": "cos",
        FEATURES + "system-os_release.VERSION_ID": "125",
    }
    assert recorded.items() <= found(COS).items()
    assert FEATURES + "pci-10de.present" not in found({})
