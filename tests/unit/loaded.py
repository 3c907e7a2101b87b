"""Stacks loaded from values, for tests of what is derived from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.stacks.files import stack_file
from berth.stacks.load.stack import EngineerStack, Environment, SettingsError, load


def environment_of(stack: str, values: dict[str, Any]) -> Environment:
    loaded = load(stack, {"environment": values}, None)
    assert isinstance(loaded, Environment)
    return loaded


def engineer_of(stack: str, **values: Any) -> EngineerStack:
    loaded = load(stack, {"engineer": {"environment": "lab"} | values}, None)
    assert isinstance(loaded, EngineerStack)
    return loaded


def places_of_problems(path: Path, text: str, stack: str) -> list[tuple[str, str]]:
    """Line and setting of each problem of a stack file with this text."""
    path.write_text(text, encoding="utf-8")
    file = stack_file.read(path)
    with pytest.raises(SettingsError) as caught:
        load(stack, file.settings, file)
    problems = [line.removeprefix(f"{path}:").split(": ") for line in caught.value.lines]
    return [(line.split(":")[0], setting) for line, setting, *_ in problems]


def environment_values(**pools: Any) -> dict[str, Any]:
    """Settings of an environment with a CPU pool of one node and these pools."""
    cpu = {"machineType": "n2-standard-16", "nodes": 1}
    return {"project": "berth-lab", "zone": "us-central1-b", "pools": {"cpu": cpu, **pools}}
