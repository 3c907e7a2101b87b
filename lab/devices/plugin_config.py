"""Configuration of NVIDIA's device plugin, read from one entry of its ConfigMap.

Simplified: a program whose entry is missing or malformed serves nothing, and an edit of an entry
counts at the next look, where a real program reads it only when its pod starts or when the node's
label names another entry. berth edits no entry: it names a ConfigMap after its content.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from berth.components.cluster.api import Object, in_namespace
from berth.components.hardware.names import CONFIG_LABEL
from berth.lab.api import Api
from berth.lab.devices.operand_objects import CONFIG_MANAGER

NONE = "none"
TIME_SLICING = "time-slicing"
MPS = "mps"

_PREFIX = "nvidia.com/"


class PluginConfigError(Exception):
    """Reason for which a program has no configuration, in the program's words."""


@dataclass(frozen=True)
class PluginConfig:
    """Sharing of devices by the plugin."""

    mig_strategy: str = ""  # a ClusterPolicy's goes before it
    strategy: str = NONE
    replicas: Mapping[str, int] = field(
        default_factory=dict
    )  # pods that may have one device, by resource
    renamed: bool = (
        False  # whether shared resources are advertised with `.shared` behind their name
    )


def config_of(api: Api, daemonset: Object, labels: Mapping[str, str]) -> PluginConfig:
    """Return the configuration of a DaemonSet's program on a node with these labels.

    Raises:
        PluginConfigError: there is none.
    """
    config_map, default = _mounted(daemonset["spec"]["template"]["spec"])
    if not config_map:
        return PluginConfig()
    found = api.get(
        f"{in_namespace(daemonset['metadata']['namespace'], '/api/v1/configmaps')}/{config_map}"
    )
    if found is None:
        raise PluginConfigError(f'configmap "{config_map}" not found')
    data = found.get("data") or {}
    entry = labels.get(CONFIG_LABEL, "") or default
    if entry and entry not in data:
        raise PluginConfigError(f"specified config {entry} does not exist (ConfigMap {config_map})")
    return parse(data[entry]) if entry else PluginConfig()


def _mounted(spec: Object) -> tuple[str, str]:
    """Return a pod's ConfigMap and the entry that its config-manager takes by default."""
    manager = next((entry for entry in spec["containers"] if entry["name"] == CONFIG_MANAGER), None)
    if manager is None:
        return "", ""
    volumes = spec.get("volumes") or []
    config_map = next(
        (volume["configMap"]["name"] for volume in volumes if volume.get("configMap")), ""
    )
    variables = {entry["name"]: entry.get("value") or "" for entry in manager.get("env") or []}
    return config_map, str(variables.get("DEFAULT_CONFIG", ""))


def parse(text: str) -> PluginConfig:
    """Read one entry; unknown keys are ignored, as the plugin does.

    Raises:
        PluginConfigError: the plugin would not start with the entry.
    """
    try:
        document = yaml.safe_load(text) or {}
        sharing = document.get("sharing") or {}
        # MPS goes before time-slicing.
        strategy = (
            MPS if sharing.get("mps") else TIME_SLICING if sharing.get("timeSlicing") else NONE
        )
        section = sharing.get("mps") or sharing.get("timeSlicing") or {}
        replicas = {
            _PREFIX + str(resource["name"]).removeprefix(_PREFIX): int(resource["replicas"])
            for resource in section.get("resources") or []
        }
        mig_strategy = str((document.get("flags") or {}).get("migStrategy") or "")
        return PluginConfig(
            mig_strategy, strategy, replicas, renamed=bool(section.get("renameByDefault"))
        )
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise PluginConfigError(
            f"unable to parse config file: {' '.join(str(error).split())}"
        ) from None
