from __future__ import annotations

from typing import Any

import pytest

from berth.components.hardware.machines import GPUS
from berth.components.hardware.names import GPU_RESOURCE as GPU
from berth.lab.devices.gpu_cluster import Observed
from berth.lab.devices.gpu_operator import Policy
from berth.lab.devices.gpus import MigError, UnknownLayoutError, instances, layouts, status_change
from berth.lab.devices.node_features import found
from berth.lab.devices.operand_objects import DRIVER, OPERANDS, PLUGIN, TOOLKIT, VALIDATOR, daemonset
from berth.lab.devices.operands import blocked, features, serve
from berth.lab.devices.plugin_config import PluginConfig

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


OWNER = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy", "uid": "p"}}


def pods(spec: dict[str, Any], *left_out: str) -> dict[str, Any]:
    """A pod of each DaemonSet that a ClusterPolicy with this spec has."""
    policy = Policy(spec)
    operands = [operand for operand in OPERANDS if operand.on(policy) and operand.name not in left_out]
    sets = {operand.name: daemonset(operand, policy, OWNER, "gpu-operator", "cos125") for operand in operands}
    return {name: entry["spec"]["template"] for name, entry in sets.items()}


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
        ({}, ON_COS, True, "the machine has no GPU"),
    ],
)
def test_the_toolkit_waits_for_a_driver_and_the_others_for_the_toolkit(
    labels: dict[str, str], spec: dict[str, Any], words: str, *, installer: bool
) -> None:
    holds = blocked(labels, pods(spec), installer=installer)
    holds.pop(DRIVER, None)
    if not words:
        assert holds == {}
        return
    assert words in holds[TOOLKIT].message
    assert holds[TOOLKIT].container in {"driver-validation", "nvidia-container-toolkit-ctr"}
    assert 'no runtime for "nvidia" is configured' in holds[PLUGIN].message
    assert set(holds) == set(pods(spec)) - {DRIVER}


def test_the_operators_driver_has_no_image_for_cos() -> None:
    holds = blocked(COS, pods({}), installer=False)
    assert (holds[DRIVER].container, holds[DRIVER].reason) == ("nvidia-driver-ctr", "ImagePullBackOff")
    assert blocked(NODE, pods({}), installer=False) == {}
    # Pods wait for a file that the validator writes.
    assert blocked(NODE, pods({}, VALIDATOR), installer=False)[PLUGIN].container == "toolkit-validation"


@pytest.mark.parametrize("layout", ["all-1g.10gb", "1g.23gb", "custom"])
def test_a_gpu_is_not_cut_in_a_way_that_it_does_not_have(layout: str) -> None:
    with pytest.raises(MigError, match=rf"{layout}: NVIDIA B200 has no such MIG configuration; it has all-1g\.23gb"):
        instances(NODE | {"nvidia.com/mig.config": layout}, {})


def test_the_layouts_are_mig_parteds() -> None:
    balanced = {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}
    assert layouts(GPUS["nvidia-h200-141gb"])["all-balanced"] == balanced
    assert layouts(GPUS["nvidia-l4"]) == {"all-disabled": {}}
    assert instances(NODE, {"7g.180gb": 1}) == ({"7g.180gb": 1}, False)
    assert instances(NODE | {"nvidia.com/mig.config": "all-disabled"}, {"7g.180gb": 1}) == ({}, True)


@pytest.mark.parametrize("layout", ["all-enabled", "all-1g.23gb.me"])
def test_layouts_that_only_the_mig_manager_knows_are_said_to_be_unknown(layout: str) -> None:
    with pytest.raises(UnknownLayoutError, match="the lab does not know"):
        instances(NODE | {"nvidia.com/mig.config": layout}, {})


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
    found = serve(NODE, strategy, config, mig)
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
    found = serve(NODE, strategy, config, mig)
    assert problem in found.problem
    assert found.resources == {}


def test_labels_of_whole_gpus_are_those_that_the_driver_reports() -> None:
    assert features(L4, "", WHOLE, {}, "595.91.07") == {
        "nvidia.com/cuda.driver-version.full": "595.91.07",
        "nvidia.com/cuda.driver-version.major": "595",
        "nvidia.com/cuda.driver-version.minor": "91",
        "nvidia.com/cuda.driver-version.revision": "07",
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


def test_labels_of_a_layout_that_single_cannot_show_say_so() -> None:
    found = features(NODE, "single", WHOLE, {"1g.23gb": 2, "3g.90gb": 1})
    assert (found[f"{GPU}.product"], found[f"{GPU}.count"]) == ("NVIDIA-B200-MIG-INVALID", "0")


def test_a_resource_that_is_no_longer_advertised_is_shown_as_none_and_then_goes() -> None:
    shown, renamed = {GPU: "8", "example.com/other": "1"}, {f"{GPU}.shared": 16}
    status = {"capacity": shown, "allocatable": shown}
    assert status_change(renamed, status)["capacity"] == {f"{GPU}.shared": "16", GPU: "0"}
    shown = {GPU: "0", f"{GPU}.shared": "16", "example.com/other": "1"}
    status = {"capacity": shown, "allocatable": shown}
    assert status_change(renamed, status) == {"capacity": {GPU: None}, "allocatable": {GPU: None}}
    assert status_change({GPU: 8}, {"capacity": {GPU: "8"}, "allocatable": {GPU: "0"}}) == {"allocatable": {GPU: "8"}}


FEATURES = "feature.node.kubernetes.io/"


def test_a_cos_node_has_the_labels_that_the_recordings_give_one() -> None:
    recorded = {
        FEATURES + "pci-10de.present": "true",
        FEATURES + "kernel-version.full": "6.12.55",
        FEATURES + "system-os_release.ID": "cos",
        FEATURES + "system-os_release.VERSION_ID": "125",
    }
    assert recorded.items() <= found(COS).items()
    assert FEATURES + "system-os_release.VERSION_ID.minor" not in found(COS)
    assert FEATURES + "pci-10de.present" not in found({})
    assert found({})[FEATURES + "system-os_release.VERSION_ID.minor"] == "04"


def test_heartbeats_and_other_objects_change_nothing() -> None:
    observed = Observed()
    node: dict[str, Any] = {"metadata": {"uid": "n", "labels": {}}, "status": {"capacity": {"cpu": "4"}}}
    assert observed.changed("Node", node, gone=False)
    beat = node | {"status": node["status"] | {"conditions": [{"lastHeartbeatTime": "now"}]}}
    assert not observed.changed("Node", beat, gone=False)
    assert observed.changed("Node", node | {"status": {"capacity": {GPU: "8"}}}, gone=False)
    pod = {"metadata": {"uid": "p", "labels": {"app": "other"}}, "spec": {}, "status": {"phase": "Running"}}
    assert not observed.changed("Pod", pod, gone=False)
    daemonset = {"metadata": {"uid": "d", "generation": 1}, "status": {"numberAvailable": 1}}
    assert observed.changed("DaemonSet", daemonset, gone=False)
    assert observed.changed("DaemonSet", daemonset | {"status": {"numberAvailable": 0}}, gone=False)
    policy = {"metadata": {"uid": "c", "generation": 1}}
    assert observed.changed("ClusterPolicy", policy, gone=False)
    assert not observed.changed("ClusterPolicy", policy | {"status": {"state": "ready"}}, gone=False)
    assert observed.changed("ClusterPolicy", policy, gone=True)
