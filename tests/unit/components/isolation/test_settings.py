"""Settings of isolation that are passed on."""

from typing import Any

from berth.stacks.load.stack import load
from berth.stacks.settings.contract import contract_of
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_engineer, resolve_environment
from berth.stacks.settings.resolved import Resolved
from tests.unit.loaded import environment_of, environment_values

BASE: dict[str, Any] = environment_values(dev={"machineType": "g2-standard-8", "nodes": 1})


def settings(**values: Any) -> EnvironmentSettings:
    return environment_of("test", BASE | values).settings


def of_engineers_stack(environment: EnvironmentSettings, **values: Any) -> Resolved:
    own = load("alice", {"engineer": {"environment": "test"} | values}, None).settings
    assert isinstance(own, EngineerSettings)
    return resolve_engineer(
        own, "alice", contract_of(environment, "test", resolve_environment(environment))
    )


def test_an_engineers_own_stack_has_the_environments_priority_and_access() -> None:
    environment = settings(
        defaults={"priority": "of-the-house", "access": {"groups": ["ml@example.com"]}}
    )
    (berth,) = of_engineers_stack(environment, access={"users": ["alice@example.com"]}).berths
    assert berth.priority == "of-the-house"
    assert (berth.access.users, berth.access.groups) == (["alice@example.com"], ["ml@example.com"])


def test_nobody_has_access_unasked() -> None:
    (berth,) = of_engineers_stack(settings()).berths
    assert not berth.access.anyone
    assert berth.priority == "berth-development"


def test_the_contract_tells_what_is_loosened() -> None:
    environment = settings(
        isolation={"podSecurity": "baseline"}, operators={"kuberay": {"namespace": "ray-system"}}
    )
    contract = contract_of(environment, "test", resolve_environment(environment))
    assert contract.isolation == environment.isolation.model_copy(update={"metadata_server": True})
    assert contract.kuberay.namespace == "ray-system"
