"""Environments for the tests of the GKE components."""

from typing import Any

from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit import loaded

CPU = {"machineType": "n2-standard-16", "nodes": {"min": 1, "max": 2}}


def environment_of(pools: dict[str, Any] | None = None, **values: Any) -> EnvironmentSettings:
    """A checked environment with these pools beside one for heads."""
    whole: dict[str, Any] = {
        "project": "some-project",
        "pools": {"cpu": CPU, **(pools or {})},
    } | values
    if "region" not in whole and "existing" not in whole.get("cluster", {}):
        whole.setdefault("zone", "us-central1-b")
    return loaded.environment_of("some", whole).settings
