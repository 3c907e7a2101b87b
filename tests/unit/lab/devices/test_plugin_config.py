from typing import Any

import pytest
import yaml

from berth.components.cluster.api import ClusterApi
from berth.components.hardware.names import GPU_RESOURCE as GPU
from berth.lab.api import Api
from berth.lab.devices.gpu_operator import OperatorPolicy
from berth.lab.devices.operand_objects import OPERANDS, PLUGIN, daemonset
from berth.lab.devices.plugin_config import PluginConfig, PluginConfigError, config_of, parse

FOUR = {"name": GPU, "replicas": 4}
OWNER = {
    "apiVersion": "nvidia.com/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "cluster-policy", "uid": "p"},
}


def sharing(**sections: Any) -> str:
    return yaml.safe_dump({"version": "v1", "sharing": sections})


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("", PluginConfig()),
        ("flags: {migStrategy: mixed}", PluginConfig("mixed")),
        (sharing(timeSlicing={"resources": [FOUR]}), PluginConfig("", "time-slicing", {GPU: 4})),
        (
            sharing(timeSlicing={"resources": [FOUR | {"name": "gpu"}]}),
            PluginConfig("", "time-slicing", {GPU: 4}),
        ),
        (
            sharing(
                timeSlicing={
                    "renameByDefault": True,
                    "failRequestsGreaterThanOne": True,
                    "resources": [FOUR],
                }
            ),
            PluginConfig("", "time-slicing", {GPU: 4}, renamed=True),
        ),
        (sharing(mps={"resources": [FOUR]}), PluginConfig("", "mps", {GPU: 4})),
        (
            sharing(mps={"resources": [FOUR]}, timeSlicing={"resources": [FOUR]}),
            PluginConfig("", "mps", {GPU: 4}),
        ),
    ],
)
def test_an_entry_is_read_as_the_plugin_does(text: str, config: PluginConfig) -> None:
    assert parse(text) == config


@pytest.mark.parametrize(
    "text", ["a: [", "- 1", sharing(timeSlicing={"resources": [{"replicas": 2}]})]
)
def test_what_the_plugin_cannot_read_ends_it(text: str) -> None:
    with pytest.raises(PluginConfigError, match="unable to parse config file"):
        parse(text)


class ConfigMaps(ClusterApi):
    def __init__(self, data: dict[str, str]) -> None:
        self.data = data

    def get(self, path: str) -> dict[str, Any] | None:
        return (
            {"data": self.data}
            if path == "/api/v1/namespaces/gpu-operator/configmaps/configs"
            else None
        )


def plugin(name: str = "configs") -> dict[str, Any]:
    operand = next(operand for operand in OPERANDS if operand.name == PLUGIN)
    config = {"name": name, "default": "any"}
    return daemonset(
        operand,
        OperatorPolicy({"devicePlugin": {"config": config}}),
        OWNER,
        "gpu-operator",
        "cos125",
    )


def test_a_nodes_label_goes_before_the_default() -> None:
    api = Api(ConfigMaps({"any": sharing(mps={"resources": [FOUR]}), "none": ""}))
    assert config_of(api, plugin(), {}).replicas == {GPU: 4}
    assert config_of(api, plugin(), {"nvidia.com/device-plugin.config": "none"}) == PluginConfig()


@pytest.mark.parametrize(
    ("name", "label", "words"),
    [("other", "any", 'configmap "other" not found'), ("configs", "nine", "nine does not")],
)
def test_a_config_map_or_an_entry_that_is_missing_is_named(
    name: str, label: str, words: str
) -> None:
    with pytest.raises(PluginConfigError, match=words):
        config_of(
            Api(ConfigMaps({"any": ""})), plugin(name), {"nvidia.com/device-plugin.config": label}
        )
