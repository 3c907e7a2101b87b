"""Shared parts of the tests of the GKE components: environments, and whether pulumi_gcp knows
an argument.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from pulumi import _types
from pydantic.alias_generators import to_camel

from berth.components.gke.resource import MAPS
from berth.stacks.load.stack import load
from berth.stacks.settings.environment import EnvironmentSettings

CPU = {"machineType": "n2-standard-16", "nodes": {"min": 1, "max": 2}}


def environment_of(pools: dict[str, Any] | None = None, **values: Any) -> EnvironmentSettings:
    """A checked environment with these pools beside one for heads."""
    whole: dict[str, Any] = {"project": "some-project", "pools": {"cpu": CPU, **(pools or {})}} | values
    if "region" not in whole and "existing" not in whole.get("cluster", {}):
        whole.setdefault("zone", "us-central1-b")
    settings = load("some", {"environment": whole}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    return settings


def unknown_arguments(value: Any, module: str, of: str, path: str = "") -> Iterator[str]:
    """Paths of arguments that pulumi_gcp's class does not have, or would send in another way.

    Args:
        value: arguments in snake case.
        module: such as `container`.
        of: the class, such as `NodePoolArgs`.
        path: where `value` is.
    """
    known = _class(module, of)
    parameters, names = inspect.signature(known).parameters, _types.input_type_py_to_pulumi_names(known)
    for key, inner in value.items():
        here = f"{path}.{key}"
        if key not in parameters:
            yield here
            continue
        if names[key] != to_camel(key):
            yield f"{here} is sent as {names[key]}"
        if (key in MAPS) != bool(re.search(r"\bMapping\[", str(parameters[key].annotation))):
            yield f"{here} is a map, or none"
        match = re.search(r"'(\w+Args)'", str(parameters[key].annotation))
        for part in inner if isinstance(inner, list) else [inner]:
            if match and isinstance(part, dict):
                yield from unknown_arguments(part, module, match[1], here)
            elif isinstance(part, dict) and "Mapping" not in str(parameters[key].annotation):
                yield f"{here} is not a mapping"


def _class(module: str, name: str) -> Any:
    package = importlib.import_module(f"pulumi_gcp.{module}")
    if hasattr(package, name):
        return getattr(package, name)
    own = re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Args")).lower()
    return getattr(importlib.import_module(f"pulumi_gcp.{module}.{own}"), name)
