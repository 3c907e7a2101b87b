"""Own stacks that need no plan: only a state with exactly what would be registered."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from berth.cli.update.unchanged import is_unchanged
from berth.components.core.manifest import owned
from berth.stacks.load import EngineerBerth
from tests.unit.loaded import engineer_of, environment_of, environment_values

PROVIDER = {"kubeconfig": "/home/kubeconfig", "version": "1"}


@pytest.fixture
def own() -> EngineerBerth:
    """A berth on an environment."""
    environment = environment_of("env", environment_values(dev={"machineType": "a4-highgpu-8g", "nodes": 2}))
    return engineer_of("alice", environment="env", worker={"gpus": 0}).on(environment.contract())


def state_of(own: EngineerBerth) -> dict[str, Any]:
    """State as the engine exports it, with the provider's kubeconfig as a secret."""
    manifests = own.berth.manifests
    assert manifests
    kubeconfig = {"4dabf18193072939515e22adb298388d": "1b4706", "plaintext": '"/home/kubeconfig"'}
    resources = [
        {"type": "pulumi:providers:kubernetes", "inputs": PROVIDER | {"kubeconfig": kubeconfig}},
        {"type": "berth:index:Berth"},
        *(
            {"type": "kubernetes:core/v1:Any", "inputs": owned(manifest, "alice")}
            for manifest in (manifests.main, manifests.namespace, *manifests.objects)
        ),
    ]
    return copy.deepcopy({"deployment": {"resources": resources}})


def test_a_state_with_all_manifests(own: EngineerBerth) -> None:
    assert is_unchanged(state_of(own), own, PROVIDER)


def test_anything_else_is_planned(own: EngineerBerth) -> None:
    less, more, other, pending = (state_of(own) for _ in range(4))
    less["deployment"]["resources"].pop()
    more["deployment"]["resources"].append({"type": "kubernetes:core/v1:Any", "inputs": {}})
    other["deployment"]["resources"][2]["inputs"]["metadata"]["labels"]["x"] = "y"
    pending["deployment"]["pending_operations"] = [{}]
    states: list[dict[str, Any]] = [less, more, other, pending, {"deployment": {}}, {}]
    for state in states:
        assert not is_unchanged(state, own, PROVIDER)
    assert not is_unchanged(state_of(own), own, PROVIDER | {"kubeconfig": "/home/other"})
