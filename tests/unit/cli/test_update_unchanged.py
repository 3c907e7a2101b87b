"""Own stacks that need no plan: only a state with exactly what would be registered."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from berth.cli.update.unchanged import is_unchanged, unchanged_berths
from berth.components.core.manifest import owned, resource_type
from berth.components.plan.plan import BERTH
from berth.stacks.load.stack import EngineerBerth, Environment
from tests.unit.loaded import engineer_of, environment_of, environment_values

PROVIDER = {"kubeconfig": "/home/kubeconfig", "version": "1"}


def resources_of(environment: Environment) -> list[dict[str, Any]]:
    """Resources of an environment's berths in its state."""
    found: list[dict[str, Any]] = []
    for inputs in environment.berths:
        manifests = inputs.manifests
        assert manifests
        parent = f"urn:pulumi:env::berth::{BERTH}::{inputs.settings.name}"
        found.append({"urn": parent, "type": BERTH})
        for manifest in (manifests.main, manifests.namespace, *manifests.objects, *manifests.jobs.values()):
            kind = resource_type(manifest)
            urn = f"urn:pulumi:env::berth::{BERTH}${kind}::{manifest['metadata']['name']}"
            found.append({"urn": urn, "type": kind, "parent": parent, "inputs": owned(manifest, inputs.stack)})
    return copy.deepcopy(found)


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
            {"type": resource_type(manifest), "inputs": owned(manifest, "alice")}
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


@pytest.fixture
def environment() -> Environment:
    """An environment with three engineers, one of them with a job."""
    values = environment_values(dev={"machineType": "a4-highgpu-8g", "nodes": 2})
    small = {"cpu": 1, "memory": "2Gi"}
    engineers = {name: {"head": small, "worker": {"gpus": 0, **small}} for name in ("alice", "bob", "carol")}
    jobs = {"nightly": {"cluster": "alice", "entrypoint": "python train.py"}}
    return environment_of("env", values | {"engineers": engineers, "jobs": jobs})


def names(resources: list[dict[str, Any]], environment: Environment, **more: Any) -> set[str]:
    return set(unchanged_berths({"deployment": {"resources": resources, **more}}, environment).names)


def test_the_berths_that_are_in_the_state_as_the_settings_want_them(environment: Environment) -> None:
    resources = resources_of(environment)
    found = unchanged_berths({"deployment": {"resources": resources}}, environment)
    assert found.names == {"alice", "bob", "carol"}
    assert sorted(found.urns) == sorted(item["urn"] for item in resources)


def test_a_berth_that_differs_or_is_new_is_planned(environment: Environment) -> None:
    resources = resources_of(environment)
    of_bob = [item for item in resources if "bob" in item["urn"] or "bob" in item.get("parent", "")]
    assert names([item for item in resources if item not in of_bob], environment) == {"alice", "carol"}
    job = next(item for item in resources if item["type"].endswith("RayJob"))
    assert names([item for item in resources if item is not job], environment) == {"bob", "carol"}
    namespace = next(item for item in of_bob if item["type"].endswith("Namespace"))
    namespace["inputs"]["metadata"]["labels"]["x"] = "y"
    more = {"urn": "urn:x", "type": "kubernetes:core/v1:Any", "parent": resources[0]["urn"], "inputs": {}}
    assert names([*resources, more], environment) == {"carol"}


@pytest.mark.parametrize("field", ["delete", "pendingReplacement", "initErrors", "taint"])
def test_what_the_engine_has_to_finish_is_planned(field: str, environment: Environment) -> None:
    resources = resources_of(environment)
    assert names(resources, environment, pending_operations=[{}]) == set()
    resources[-1][field] = True
    assert names(resources, environment) == set()
