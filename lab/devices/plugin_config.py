"""Configuration of NVIDIA's device plugin, read from one entry of its ConfigMap or refused.

Answers to (read): https://github.com/NVIDIA/k8s-device-plugin/tree/v0.20.0 (api/config/v1: rules
    and words; README, "Configuration file" and "Shared access to GPUs")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

NONE, TIME_SLICING, MPS = "none", "time-slicing", "mps"

_VERSION = "v1"
_PREFIX = "nvidia.com/"
_LEAST_REPLICAS = 2


class PluginConfigError(Exception):
    """Reason for which the plugin ends when it starts, and is started again and again."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"unable to parse config file: {reason}")


@dataclass(frozen=True)
class PluginConfig:
    """Sharing of devices by the plugin."""

    mig_strategy: str = ""  # a ClusterPolicy's goes before it
    strategy: str = NONE
    replicas: Mapping[str, int] = field(
        default_factory=dict
    )  # pods that may have one device of a resource, by resource
    renamed: bool = False  # whether shared resources are advertised with `.shared` behind their name
    single: bool = False  # whether a container that asks for more than one shared device is refused


def parse(text: str) -> PluginConfig:
    """Read one entry; unknown keys are ignored, as the plugin does.

    Raises:
        PluginConfigError: the plugin would not start with the entry.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PluginConfigError(" ".join(str(error).split())) from None
    document = _mapping({} if document is None else document, "the config file")
    version = document.get("version") or _VERSION
    if version != _VERSION:
        raise PluginConfigError(f"unknown version: {version}")
    strategy = str(_mapping(document.get("flags") or {}, "flags").get("migStrategy") or "")
    sharing = _mapping(document.get("sharing") or {}, "sharing")
    # MPS goes before time-slicing. By default it lets a container have one device.
    if sharing.get("mps") is not None:
        return _shared(_mapping(sharing["mps"], "sharing.mps"), MPS, strategy, single=True)
    if "timeSlicing" in sharing:
        section = _mapping(sharing["timeSlicing"] or {}, "sharing.timeSlicing")
        return _shared(section, TIME_SLICING, strategy, single=False)
    return PluginConfig(strategy)


def _shared(section: Mapping[str, Any], strategy: str, mig_strategy: str, *, single: bool) -> PluginConfig:
    resources = section.get("resources")
    if not resources or not isinstance(resources, list):
        raise PluginConfigError("no resources specified")
    return PluginConfig(
        mig_strategy=mig_strategy,
        strategy=strategy,
        replicas=dict(_replicas(_mapping(resource, "a resource")) for resource in resources),
        renamed=_boolean(section, "renameByDefault", default=False),
        single=_boolean(section, "failRequestsGreaterThanOne", default=single),
    )


def _replicas(resource: Mapping[str, Any]) -> tuple[str, int]:
    if not resource.get("name"):
        raise PluginConfigError("no resource name specified")
    if "replicas" not in resource:
        raise PluginConfigError("no replicas specified")
    count = resource["replicas"]
    if not isinstance(count, int) or isinstance(count, bool):
        raise PluginConfigError(f"replicas must be a number, not {count!r}")
    if count < _LEAST_REPLICAS:
        raise PluginConfigError("number of replicas must be >= 2")
    return _PREFIX + str(resource["name"]).removeprefix(_PREFIX), count


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PluginConfigError(f"{name} must be a mapping, not {value!r}")
    return value


def _boolean(section: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = section.get(key)
    if value is not None and not isinstance(value, bool):
        raise PluginConfigError(f"{key} must be true or false, not {value!r}")
    return default if value is None else value
