from __future__ import annotations

from typing import Any

import pytest

from berth.lab.devices.advertised import GPU
from berth.lab.devices.device_plugins import DevicePlugins, Started
from berth.lab.devices.gpu_operator import Policy
from berth.lab.devices.operand_objects import OPERANDS, PLUGIN, daemonset

OWNER = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy", "uid": "p"}}


def entry(replicas: int) -> str:
    return f"sharing: {{timeSlicing: {{resources: [{{name: {GPU}, replicas: {replicas}}}]}}}}"


def node(uid: str = "n", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "node", "uid": uid, "labels": {f"nvidia.com/{key}": labels[key] for key in labels}}}


def pod(uid: str = "pod", name: str = "configs", default: str = "any") -> dict[str, Any]:
    config = {"name": name, "default": default} if name else {}
    plugin = next(operand for operand in OPERANDS if operand.name == PLUGIN)
    made = daemonset(plugin, Policy({"devicePlugin": {"config": config}}), OWNER, "gpu-operator", "cos125")
    return {"metadata": {"uid": uid}, "spec": made["spec"]["template"]["spec"]}


class World:
    def __init__(self) -> None:
        self.plugins = DevicePlugins()
        self.data: dict[str, dict[str, str]] = {"configs": {"any": entry(4), "two": entry(2), "bad": entry(1)}}
        self.reads = 0

    def read(self, name: str) -> dict[str, str] | None:
        self.reads += 1
        return self.data.get(name)

    def start(self, node: dict[str, Any], pod: dict[str, Any] | None) -> Started | None:
        return self.plugins.start(node, PLUGIN, pod, "now", self.read)

    def replicas(self, node: dict[str, Any], pod: dict[str, Any] | None) -> int | None:
        started = self.start(node, pod)
        return started.config.replicas.get(GPU, 1) if started is not None and started.config is not None else None


LABEL = "device-plugin.config"


def test_without_a_pod_no_plugin_runs() -> None:
    assert World().start(node(), None) is None


def test_the_nodes_label_goes_before_the_default() -> None:
    world = World()
    assert world.replicas(node(), pod()) == 4
    assert world.replicas(node(**{LABEL: "two"}), pod()) == 2


@pytest.mark.parametrize("plugin", [pod(name=""), pod(default="")])
def test_without_an_entry_nothing_is_shared(plugin: dict[str, Any]) -> None:
    assert World().replicas(node(), plugin) == 1


def test_an_edit_in_place_is_not_seen_until_something_starts_the_plugin_anew() -> None:
    world = World()
    assert world.replicas(node(), pod()) == 4
    world.data["configs"]["any"] = entry(8)
    assert world.replicas(node(), pod()) == 4
    assert world.reads == 1
    # Its pod is replaced; between the two the devices stay.
    assert world.replicas(node(), None) == 4
    assert world.replicas(node(), pod("other")) == 8


@pytest.mark.parametrize(
    ("again", "plugin"),
    [
        (node(**{LABEL: "two"}), pod()),
        (node(**{"mig.config": "all-1g.23gb"}), pod()),
        (node("other"), pod()),
        (node(), pod(name="other")),
    ],
)
def test_what_starts_the_plugin_anew(again: dict[str, Any], plugin: dict[str, Any]) -> None:
    world = World()
    world.data["other"] = world.data["configs"]
    world.start(node(), pod())
    world.start(again, plugin)
    assert world.reads == 2


def test_a_new_controller_starts_plugins_anew() -> None:
    world = World()
    world.start(node(), pod())
    world.data["configs"]["any"] = entry(8)
    world.plugins = DevicePlugins()
    assert world.replicas(node(), pod()) == 8


def held(started: Started | None) -> tuple[str, str, str]:
    assert started is not None
    assert started.hold is not None
    return started.hold.container, started.hold.reason, started.hold.message


def test_a_pod_waits_for_its_config_map() -> None:
    world = World()
    container, reason, message = held(world.start(node(), pod(name="missing")))
    assert (container, reason) == ("", "ContainerCreating")
    assert 'configmap "missing" not found' in message
    world.data["missing"] = {"any": entry(3)}
    assert world.replicas(node(), pod(name="missing")) == 3


def test_a_plugin_that_cannot_read_its_entry_does_not_run_until_the_entry_is_better() -> None:
    world = World()
    bad = node(**{LABEL: "bad"})
    started = world.start(bad, pod())
    assert started is not None
    assert started.config is None
    container, reason, message = held(started)
    assert (container, reason) == ("nvidia-device-plugin", "CrashLoopBackOff")
    assert "number of replicas must be >= 2 (ConfigMap configs, bad)" in message
    world.data["configs"]["bad"] = entry(5)
    assert world.replicas(bad, pod()) == 5


def test_a_plugin_that_runs_outlives_a_label_without_an_entry_and_one_that_starts_does_not() -> None:
    world = World()
    world.start(node(), pod())
    running = world.start(node(**{LABEL: "nine"}), pod())
    assert running is not None
    assert running.config is not None
    assert held(running)[:2] == ("config-manager", "CrashLoopBackOff")
    starting = world.start(node(**{LABEL: "nine"}), pod("other"))
    assert starting is not None
    assert starting.config is None
    assert held(starting)[0] == "config-manager-init"
    assert "specified config nine does not exist" in held(starting)[2]


def test_a_default_that_is_not_in_the_config_map_keeps_the_plugin_from_starting() -> None:
    container, _, message = held(World().start(node(), pod(default="nine")))
    assert container == "config-manager-init"
    assert "DEFAULT_CONFIG is nine" in message


def test_an_empty_config_map_has_no_files() -> None:
    world = World()
    world.data["configs"] = {}
    assert "no configuration files available" in held(world.start(node(), pod(default="")))[2]


def test_a_node_that_left_is_forgotten() -> None:
    world = World()
    world.start(node(), pod())
    world.plugins.keep(set())
    assert world.start(node(), None) is None
