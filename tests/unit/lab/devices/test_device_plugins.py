from __future__ import annotations

from typing import Any

import pytest

from lab.devices.advertised import GPU
from lab.devices.device_plugins import DevicePlugins, MissingError, Started
from lab.devices.gpu_operator import Policy
from lab.devices.operand_objects import plugin_daemonset

OWNER = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy", "uid": "p"}}


def entry(replicas: int) -> str:
    return f"sharing: {{timeSlicing: {{resources: [{{name: {GPU}, replicas: {replicas}}}]}}}}"


def node(uid: str = "n", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "node", "uid": uid, "labels": {f"nvidia.com/{key}": labels[key] for key in labels}}}


def pod(uid: str = "pod", name: str = "configs", default: str = "any") -> dict[str, Any]:
    config = {"name": name, "default": default} if name else {}
    daemonset = plugin_daemonset(Policy({"devicePlugin": {"config": config}}), OWNER, "gpu-operator")
    return {"metadata": {"uid": uid}, "spec": daemonset["spec"]["template"]["spec"]}


class World:
    def __init__(self) -> None:
        self.plugins = DevicePlugins()
        self.data: dict[str, dict[str, str]] = {"configs": {"any": entry(4), "two": entry(2), "bad": entry(1)}}
        self.reads = 0

    def read(self, name: str) -> dict[str, str] | None:
        self.reads += 1
        return self.data.get(name)

    def start(self, node: dict[str, Any], pod: dict[str, Any] | None) -> Started | None:
        return self.plugins.start(node, pod, "now", self.read)

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


def test_a_pod_waits_for_its_config_map() -> None:
    world = World()
    with pytest.raises(MissingError, match="waits for ConfigMap missing"):
        world.start(node(), pod(name="missing"))
    world.data["missing"] = {"any": entry(3)}
    assert world.replicas(node(), pod(name="missing")) == 3


def test_a_plugin_that_cannot_read_its_entry_does_not_run() -> None:
    started = World().start(node(**{LABEL: "bad"}), pod())
    assert started is not None
    assert started.config is None
    assert "number of replicas must be >= 2 (ConfigMap configs, bad)" in started.problem


def test_a_plugin_that_runs_outlives_a_label_without_an_entry_and_one_that_starts_does_not() -> None:
    world = World()
    world.start(node(), pod())
    running = world.start(node(**{LABEL: "nine"}), pod())
    assert running is not None
    assert running.config is not None
    assert "specified config nine does not exist" in running.problem
    starting = world.start(node(**{LABEL: "nine"}), pod("other"))
    assert starting is not None
    assert starting.config is None


def test_a_node_that_left_is_forgotten() -> None:
    world = World()
    world.start(node(), pod())
    world.plugins.keep(set())
    assert world.start(node(), None) is None
