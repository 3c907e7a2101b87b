from __future__ import annotations

from typing import Any

import pytest
import yaml

from berth.components.hardware.names import GPU_RESOURCE as GPU
from berth.lab.devices.plugin_config import PluginConfig, PluginConfigError, parse

FOUR = {"name": GPU, "replicas": 4}


def sharing(**sections: Any) -> str:
    return yaml.safe_dump({"version": "v1", "sharing": sections})


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("", PluginConfig()),
        ("version: v1", PluginConfig()),
        ("flags: {migStrategy: mixed}", PluginConfig("mixed")),
        (sharing(timeSlicing={"resources": [FOUR]}), PluginConfig("", "time-slicing", {GPU: 4})),
        (sharing(timeSlicing={"resources": [FOUR | {"name": "gpu"}]}), PluginConfig("", "time-slicing", {GPU: 4})),
        (
            sharing(timeSlicing={"renameByDefault": True, "failRequestsGreaterThanOne": True, "resources": [FOUR]}),
            PluginConfig("", "time-slicing", {GPU: 4}, renamed=True, single=True),
        ),
        (
            sharing(timeSlicing={"resources": [FOUR | {"devices": [0], "rename": "x"}]}),
            PluginConfig("", "time-slicing", {GPU: 4}),
        ),
        (sharing(mps={"resources": [FOUR]}), PluginConfig("", "mps", {GPU: 4}, single=True)),
        (
            sharing(mps={"failRequestsGreaterThanOne": False, "resources": [FOUR]}),
            PluginConfig("", "mps", {GPU: 4}),
        ),
        (
            sharing(mps={"resources": [FOUR]}, timeSlicing={"resources": [FOUR]}),
            PluginConfig("", "mps", {GPU: 4}, single=True),
        ),
        (sharing(unknown=1), PluginConfig()),
    ],
)
def test_an_entry_is_read_as_the_plugin_does(text: str, config: PluginConfig) -> None:
    assert parse(text) == config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "unable to parse config file"),
        ("- 1", "the config file must be a mapping"),
        ("version: v2", "unknown version: v2"),
        (sharing(timeSlicing={}), "no resources specified"),
        (sharing(timeSlicing={"resources": []}), "no resources specified"),
        (sharing(timeSlicing={"resources": [{"replicas": 2}]}), "no resource name specified"),
        (sharing(timeSlicing={"resources": [{"name": GPU}]}), "no replicas specified"),
        (sharing(timeSlicing={"resources": [FOUR | {"replicas": 1}]}), "number of replicas must be >= 2"),
        (sharing(timeSlicing={"resources": [FOUR | {"replicas": "4"}]}), "replicas must be a number, not '4'"),
        (sharing(timeSlicing={"resources": [FOUR], "renameByDefault": "yes"}), "renameByDefault must be true or false"),
    ],
)
def test_what_the_plugin_cannot_read_ends_it(text: str, words: str) -> None:
    with pytest.raises(PluginConfigError, match=words):
        parse(text)
