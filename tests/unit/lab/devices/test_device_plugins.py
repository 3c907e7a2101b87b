"""Starts of the programs that share GPUs, beyond those of tests/lab."""

from __future__ import annotations

from typing import Any

import pytest

from berth.lab.devices.device_plugins import DevicePlugins
from berth.lab.devices.gpu_operator import Policy
from berth.lab.devices.operand_objects import OPERANDS, PLUGIN, daemonset

GPU = "nvidia.com/gpu"
OWNER = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy", "uid": "p"}}


def entry(replicas: int) -> str:
    return f"sharing: {{timeSlicing: {{resources: [{{name: {GPU}, replicas: {replicas}}}]}}}}"


def node(uid: str = "n", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "node", "uid": uid, "labels": {f"nvidia.com/{key}": labels[key] for key in labels}}}


def pod(uid: str = "pod", name: str = "configs", default: str = "any") -> dict[str, Any]:
    config = {"name": name, "default": default} if name else {}
    plugin = next(operand for operand in OPERANDS if operand.name == PLUGIN)
    found = daemonset(plugin, Policy({"devicePlugin": {"config": config}}), OWNER, "gpu-operator", "cos125")
    return {"metadata": {"uid": uid}, "spec": found["spec"]["template"]["spec"]}


class World:
    def __init__(self) -> None:
        self.plugins = DevicePlugins()
        self.data: dict[str, dict[str, str]] = {"configs": {"any": entry(4), "two": entry(2), "bad": entry(1)}}

    def start(self, node: dict[str, Any], pod: dict[str, Any] | None) -> tuple[int | None, str]:
        """Replicas of a GPU that the plugin has read, and why its pod is not ready."""
        started = self.plugins.start(node, PLUGIN, pod, "now", self.data.get)
        if started is None:
            return None, ""
        hold = f"{started.hold.container}: {started.hold.message}" if started.hold else ""
        return (started.config.replicas.get(GPU, 1) if started.config else None), hold


LABEL = "device-plugin.config"


@pytest.mark.parametrize(
    ("again", "plugin"),
    [
        (node(**{"mig.config": "all-1g.23gb"}), pod()),
        (node("other"), pod()),
        (node(), pod("other")),
        (node(), pod(name="other")),
    ],
)
def test_an_edit_in_place_is_read_at_the_next_start(again: dict[str, Any], plugin: dict[str, Any]) -> None:
    world = World()
    assert world.start(node(), pod()) == (4, "")
    world.data["configs"]["any"] = entry(8)
    world.data["other"] = world.data["configs"]
    assert world.start(node(), pod()) == world.start(node(), None) == (4, "")
    assert world.start(again, plugin) == (8, "")


def test_a_pod_waits_for_its_config_map() -> None:
    world = World()
    assert 'configmap "missing" not found' in world.start(node(), pod(name="missing"))[1]
    world.data["missing"] = {}
    assert "no configuration files available" in world.start(node(), pod(name="missing", default=""))[1]
    world.data["missing"] = {"any": entry(3)}
    assert world.start(node(), pod(name="missing")) == (3, "")


def test_a_plugin_that_runs_outlives_a_label_without_an_entry_and_one_that_starts_does_not() -> None:
    world, lost = World(), node(**{LABEL: "nine"})
    world.start(node(), pod())
    config, hold = world.start(lost, pod())
    assert (config, hold.partition(":")[0]) == (4, "config-manager")
    config, hold = world.start(lost, pod("other"))
    assert config is None
    assert hold.startswith("config-manager-init: specified config nine does not exist")
    assert "DEFAULT_CONFIG is nine" in World().start(node(), pod(default="nine"))[1]
