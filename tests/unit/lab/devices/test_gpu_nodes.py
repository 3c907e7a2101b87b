"""The lab's GPU programs together, in a cluster in memory; tests/lab has the same with a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.lab.devices.gpu_nodes import GpuNodes
from tests.unit.lab.devices.small_cluster import TOLERATED, SmallCluster

GPU = "nvidia.com/gpu"
GPUS = {"cloud.google.com/gke-accelerator": "nvidia-b200", "cloud.google.com/gke-accelerator-count": "8"}
COS = GPUS | {"cloud.google.com/gke-os-distribution": "cos"}
GKES = COS | {"cloud.google.com/gke-gpu-driver-version": "default"}
OPERATORS = GKES | {"gke-no-default-nvidia-gpu-device-plugin": "true"}
OPT_OUT = {"nvidia.com/gpu.deploy.operands": "false"}
CONFIG = "nvidia.com/device-plugin.config"
FOLDER = "/home/kubernetes/bin/nvidia"
DEDICATED = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}


def entry(replicas: int, kind: str = "timeSlicing", **options: bool) -> str:
    return yaml.safe_dump({"sharing": {kind: options | {"resources": [{"name": GPU, "replicas": replicas}]}}})


CONFIGS = {"any": entry(4), "renamed": entry(2, renameByDefault=True), "mps": entry(2, "mps"), "whole": "version: v1"}


def spec(**changes: Any) -> dict[str, Any]:
    return {
        "driver": {"enabled": False},
        "dcgm": {"enabled": False},
        "hostPaths": {"driverInstallDir": FOLDER},
        "toolkit": {"installDir": FOLDER},
        "devicePlugin": {"config": {"name": "configs", "default": "any"}},
        "migManager": {"config": {"default": "all-disabled"}},
        "mig": {"strategy": "single"},
    } | changes


class World:
    """A cluster with the lab's GPU programs in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = SmallCluster()
        self.cluster.add_node("cpu", **{"cloud.google.com/gke-os-distribution": "cos"})
        self._programs = GpuNodes(Path("nowhere"), lambda _: True)
        monkeypatch.setattr(self._programs, "_connected", self.cluster)

    def settle(self) -> None:
        for _ in range(20):
            before = self.cluster.text()
            self._programs.step()
            self.cluster.run()
            if self.cluster.text() == before:
                return
        raise AssertionError("the lab's GPU programs do not come to rest")

    def devices(self, name: str = "gpus") -> dict[str, str]:
        found = self.cluster.objects["nodes"][name]["status"].get("allocatable") or {}
        return {resource: count for resource, count in found.items() if count != "0"}

    def labels(self, name: str = "gpus") -> dict[str, str]:
        return dict(self.cluster.objects["nodes"][name]["metadata"]["labels"])

    def label(self, name: str = "gpus", **labels: str) -> None:
        self.cluster.objects["nodes"][name]["metadata"]["labels"] |= labels

    def condition(self) -> tuple[str, str]:
        conditions = self.cluster.objects["clusterpolicies"]["cluster-policy"]["status"]["conditions"]
        told = next(each for each in conditions if each["status"] == "True")
        return told["reason"], told["message"]

    def why(self, operand: str, node: str = "gpus") -> str:
        (ready, *_) = self.cluster.objects["pods"][f"{operand}-{node}"]["status"]["conditions"]
        return str(ready.get("message", ""))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_node_for_the_operator_offers_the_shares_that_the_default_says(world: World) -> None:
    world.cluster.add_node("gpus", **OPERATORS)
    world.cluster.install(spec(), CONFIGS)
    world.settle()
    assert world.devices() == {GPU: "32"}
    assert world.labels()["nvidia.com/gpu.product"] == "NVIDIA-B200-SHARED"
    assert world.labels()["nvidia.com/mig.config.state"] == "success"
    assert world.condition()[0] == "Reconciled"
    assert set(world.cluster.objects["runtimeclasses"]) == {"nvidia", "nvidia-cdi", "nvidia-legacy"}


def test_a_node_of_gkes_without_the_opt_out_label_is_served_twice(world: World) -> None:
    world.cluster.add_node("gpus", **GKES)
    world.settle()
    assert world.devices() == {GPU: "8"}
    world.cluster.install(spec(), CONFIGS)
    world.settle()
    # The plugin that registers last counts; and what only it has stands beside the other's.
    assert world.devices() == {GPU: "32"}
    world.label(**{CONFIG: "renamed"})
    world.settle()
    assert world.devices() == {GPU: "8", f"{GPU}.shared": "16"}
    world.label(**OPT_OUT)
    world.settle()
    assert world.devices() == {GPU: "8"}
    assert not any(name.startswith("nvidia-device-plugin") for name in world.cluster.objects["pods"])


def test_without_gpus_there_is_no_daemon_set_and_without_workers_no_label(world: World) -> None:
    world.cluster.install(spec(), CONFIGS)
    del world.cluster.objects["daemonsets"]["nfd-worker"]
    world.settle()
    assert world.condition() == ("NFDLabelsMissing", "No NFD labels found")
    world.cluster.objects["daemonsets"].clear()
    world.cluster.install(spec(), CONFIGS)
    world.settle()
    assert world.condition()[0] == "NoGPUNodes"
    assert set(world.cluster.objects["daemonsets"]) == {"nfd-worker"}


def test_a_name_that_is_not_in_the_config_map_leaves_the_node_without_devices(world: World) -> None:
    world.cluster.add_node("gpus", **OPERATORS, **{CONFIG: "nosuch"})
    world.cluster.install(spec(), CONFIGS)
    world.settle()
    assert world.devices() == {}
    assert "specified config nosuch does not exist" in world.why("nvidia-device-plugin-daemonset")
    states = "[state-operator-validation state-device-plugin gpu-feature-discovery]"
    assert world.condition() == ("OperandNotReady", f"ClusterPolicy is not ready; states not ready: {states}")
    world.label(**{CONFIG: "whole"})
    world.settle()
    assert world.devices() == {GPU: "8"}
    assert world.condition()[0] == "Reconciled"


def test_a_config_map_that_is_not_there_holds_the_pods_back(world: World) -> None:
    world.cluster.add_node("gpus", **OPERATORS)
    world.cluster.install(spec(), CONFIGS)
    config = world.cluster.objects["configmaps"].pop("configs")
    world.settle()
    assert world.devices() == {}
    assert 'configmap "configs" not found' in world.why("gpu-feature-discovery")
    world.cluster.objects["configmaps"]["configs"] = config
    world.settle()
    assert world.devices() == {GPU: "32"}


def test_a_taint_that_the_operands_do_not_tolerate_leaves_the_node_without_devices(world: World) -> None:
    world.cluster.add_node("gpus", DEDICATED, **OPERATORS)
    world.cluster.add_node("free", **OPERATORS)
    tolerations = [*TOLERATED, {"key": "dedicated", "operator": "Exists"}]
    world.cluster.install(spec(), CONFIGS, tolerations=tolerations)
    world.settle()
    assert world.labels()["nvidia.com/gpu.deploy.device-plugin"] == "true"
    assert (world.devices(), world.devices("free")) == ({}, {GPU: "32"})
    # The operator does not count a pod that nobody wants.
    assert world.condition()[0] == "Reconciled"
    policy = world.cluster.objects["clusterpolicies"]["cluster-policy"]
    policy["spec"] = spec(daemonsets={"tolerations": tolerations})
    policy["metadata"]["generation"] = 2
    world.settle()
    assert world.devices() == {GPU: "32"}


def test_a_taint_that_feature_discovery_does_not_tolerate_hides_the_node(world: World) -> None:
    world.cluster.add_node("gpus", DEDICATED, **OPERATORS)
    world.cluster.add_node("free", **OPERATORS)
    world.cluster.install(spec(daemonsets={"tolerations": [{"operator": "Exists"}]}), CONFIGS)
    world.settle()
    assert not any(name.startswith(("nvidia.com/gpu.", "feature.")) for name in world.labels())
    assert (world.devices(), world.devices("free")) == ({}, {GPU: "32"})


@pytest.mark.parametrize(
    ("node", "change", "operand", "words"),
    [
        (GPUS, {}, "nvidia-container-toolkit-daemonset", "no NVIDIA driver: GKE installs none"),
        (OPERATORS, {"hostPaths": {}}, "nvidia-container-toolkit-daemonset", "hostPaths.driverInstallDir"),
        (OPERATORS, {"toolkit": {}}, "nvidia-container-toolkit-daemonset", "toolkit.installDir"),
        (OPERATORS, {"toolkit": {}}, "nvidia-operator-validator", 'no runtime for "nvidia" is configured'),
        (COS, {"driver": {}}, "nvidia-driver-daemonset", "no such image"),
    ],
)
def test_operands_wait_where_the_node_lacks_what_they_need(
    world: World, node: dict[str, str], change: dict[str, Any], operand: str, words: str
) -> None:
    world.cluster.add_node("gpus", **node)
    world.cluster.install(spec(**change), CONFIGS)
    world.settle()
    assert world.devices() == {}
    assert words in world.why(operand)
    assert world.condition()[0] == "OperandNotReady"


def test_mig_instances_come_when_feature_discovery_has_found_gpus_that_can_do_it(world: World) -> None:
    world.cluster.add_node("gpus", **OPERATORS, **{"nvidia.com/mig.config": "all-3g.90gb", CONFIG: "whole"})
    world.cluster.install(spec(), CONFIGS)
    world.settle()
    assert world.devices() == {GPU: "16"}
    assert world.labels()["nvidia.com/gpu.product"] == "NVIDIA-B200-MIG-3g.90gb"
    world.label(**{"nvidia.com/mig.config": "all-1g.5gb"})
    world.settle()
    assert world.labels()["nvidia.com/mig.config.state"] == "failed"
    assert world.devices() == {GPU: "16"}, "a layout that does not exist changes no GPU"


def test_the_plugin_shares_by_mps_once_the_daemon_runs_where_feature_discovery_said_so(world: World) -> None:
    world.cluster.add_node("gpus", **OPERATORS, **{CONFIG: "mps"})
    world.cluster.install(spec(), CONFIGS)
    world.settle()
    assert world.devices() == {GPU: "16"}
    assert "nvidia-device-plugin-mps-control-daemon-gpus" in world.cluster.objects["pods"]
    policy = world.cluster.objects["clusterpolicies"]["cluster-policy"]
    policy["spec"] = spec(gfd={"enabled": False})
    policy["metadata"]["generation"] = 2
    world.settle()
    assert world.devices() == {}
    assert "MPS daemon" in world.why("nvidia-device-plugin-daemonset")


def test_the_operator_leaves_its_own_labels_and_takes_those_of_feature_discovery(world: World) -> None:
    world.cluster.add_node("gpus", **OPERATORS)
    world.cluster.install(spec(), CONFIGS)
    world.settle()
    for plural in ("daemonsets", "deployments", "clusterpolicies"):
        world.cluster.objects[plural].clear()
    world.settle()
    assert world.devices() == {}
    assert world.labels()["nvidia.com/gpu.deploy.device-plugin"] == "true"
    assert "nvidia.com/gpu.product" not in world.labels()
    assert not any(name.startswith("feature.") for name in world.labels())
