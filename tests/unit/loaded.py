"""Stacks loaded from values, for tests of what is derived from them."""

from typing import Any

from berth.stacks.load.stack import EngineerStack, Environment, load


def environment_of(stack: str, values: dict[str, Any]) -> Environment:
    loaded = load(stack, {"environment": values}, None)
    assert isinstance(loaded, Environment)
    return loaded


def engineer_of(stack: str, **values: Any) -> EngineerStack:
    loaded = load(stack, {"engineer": {"environment": "lab"} | values}, None)
    assert isinstance(loaded, EngineerStack)
    return loaded


def environment_values(**pools: Any) -> dict[str, Any]:
    """Settings of an environment with a CPU pool of two nodes and these pools."""
    cpu = {"machineType": "n2-standard-16", "nodes": 2}
    return {"project": "berth-lab", "zone": "us-central1-b", "pools": {"cpu": cpu, **pools}}
