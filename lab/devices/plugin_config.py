"""What NVIDIA's device plugin reads from one entry of its ConfigMap, and what it refuses.

Answers to (read): https://github.com/NVIDIA/k8s-device-plugin/tree/v0.20.0 (api/config/v1: rules and words; README, "Configuration
    file" and "Shared access to GPUs")
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "v1"
NONE, TIME_SLICING, MPS = "none", "time-slicing", "mps"
SHARED = ".shared"

_PREFIX = "nvidia.com/"
_LEAST_REPLICAS = 2


class PluginConfigError(Exception):
    """The plugin ends with this when it starts, and is started again and again."""


@dataclass(frozen=True)
class PluginConfig:
    """How the plugin shares devices.

    Attributes:
        mig_strategy: the file's own; what the ClusterPolicy says goes before it.
        strategy: `none`, `time-slicing` or `mps`.
        replicas: how many pods may have one device of a resource, by the resource's name.
        renamed: whether shared resources are advertised with `.shared` behind their name.
        single: whether a container that asks for more than one shared device is refused.
    """

    mig_strategy: str = ""
    strategy: str = NONE
    replicas: Mapping[str, int] = field(default_factory=dict)
    renamed: bool = False
    single: bool = False


def parse(text: str) -> PluginConfig:
    """Read one entry; unknown keys are passed over, as the plugin does.

    Raises:
        PluginConfigError: the plugin would not start with it.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PluginConfigError(f"unable to parse config file: {' '.join(str(error).split())}") from None
    if document is None:
        return PluginConfig()
    document = _mapping(document, "the config file")
    version = document.get("version") or VERSION
    if version != VERSION:
        raise PluginConfigError(f"unable to parse config file: unknown version: {version}")
    strategy = _mapping(document.get("flags") or {}, "flags").get("migStrategy") or ""
    sharing = _mapping(document.get("sharing") or {}, "sharing")
    # MPS goes before time-slicing where a file has both. It lets a container have one device, unless told otherwise.
    if sharing.get("mps") is not None:
        return _shared(_mapping(sharing["mps"], "sharing.mps"), MPS, str(strategy), single=True)
    if "timeSlicing" in sharing:
        return _shared(_mapping(sharing["timeSlicing"] or {}, "sharing.timeSlicing"), TIME_SLICING, str(strategy))
    return PluginConfig(str(strategy))


def _shared(section: Mapping[str, Any], strategy: str, mig_strategy: str, *, single: bool = False) -> PluginConfig:
    resources = section.get("resources")
    if not resources or not isinstance(resources, list):
        raise PluginConfigError("unable to parse config file: no resources specified")
    replicas = {}
    for resource in resources:
        entry = _mapping(resource, "a resource")
        if not entry.get("name"):
            raise PluginConfigError("unable to parse config file: no resource name specified")
        if "replicas" not in entry:
            raise PluginConfigError("unable to parse config file: no replicas specified")
        count = entry["replicas"]
        if not isinstance(count, int) or isinstance(count, bool):
            raise PluginConfigError(f"unable to parse config file: replicas must be a number, not {count!r}")
        if count < _LEAST_REPLICAS:
            raise PluginConfigError("unable to parse config file: number of replicas must be >= 2")
        name = str(entry["name"])
        replicas[name if name.startswith(_PREFIX) else _PREFIX + name] = count
    return PluginConfig(
        mig_strategy=mig_strategy,
        strategy=strategy,
        replicas=replicas,
        renamed=_boolean(section, "renameByDefault", default=False),
        single=_boolean(section, "failRequestsGreaterThanOne", default=single),
    )


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PluginConfigError(f"unable to parse config file: {what} must be a mapping, not {value!r}")
    return value


def _boolean(section: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = section.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise PluginConfigError(f"unable to parse config file: {key} must be true or false, not {value!r}")
    return value
