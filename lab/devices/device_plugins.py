"""Configuration that the programs which share GPUs have read, and when they read it again.

The device plugin, GPU feature discovery and the MPS control daemon read one entry of a ConfigMap
when their pod starts, and when the node's label names another entry (the config-manager beside them
watches the label). A running program does not notice an edit of the entry. The MIG manager takes
the pods away while it cuts GPUs. A new process of the lab's controller counts as a start.

Answers to (read):
    https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/cmd/config-manager/main.go (label
    before default, default before an empty config; a name that is not in the ConfigMap ends the
    config-manager: the init container of a pod that starts, the container beside a program that
    runs on)
Answers to (recorded): ../shared/upstream/gpu-operator/recordings A2, D1, I1 (the variables of the
    config-manager; a changed entry changes no DaemonSet)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.hardware.names import CONFIG_LABEL, MIG_LABEL
from berth.lab.devices.kubelet import CRASHES, CREATES, Hold, variable
from berth.lab.devices.operand_objects import CONFIG_INIT, CONFIG_MANAGER
from berth.lab.devices.plugin_config import PluginConfig, PluginConfigError, parse

Read = Callable[[str], Mapping[str, str] | None]
"""Function that returns a ConfigMap's data by its name, or None."""


@dataclass(frozen=True)
class Started:
    """A program that has started on a node."""

    key: tuple[str, ...]  # what it started from: the node's uid, then the pod's, …; another key is another start
    config: PluginConfig | None  # None where it does not run
    since: str  # time of the start (RFC 3339)
    strategy: str = ""  # MIG strategy of its pod; empty where the configuration has it
    hold: Hold | None = None  # why its pod is not ready; a program with a configuration works nevertheless


class DevicePlugins:
    """Programs of all nodes, with the configuration that they have read."""

    def __init__(self) -> None:
        self._started: dict[tuple[str, str], Started] = {}

    def forget(self, node: str, program: str) -> None:
        """Forget a program that does not run on a node any more."""
        self._started.pop((node, program), None)

    def retain(self, nodes: set[str]) -> None:
        """Forget all nodes but these."""
        self._started = {key: started for key, started in self._started.items() if key[0] in nodes}

    def start(self, node: Object, program: str, pod: Object | None, now: str, read: Read) -> Started | None:
        """Return the program of a DaemonSet that runs on a node, started again where that is due.

        Without a pod the last one's program is returned: its devices stay until the next pod comes.
        """
        metadata = node["metadata"]
        name, labels = metadata["name"], metadata.get("labels") or {}
        before = self._started.get((name, program))
        if before is not None and before.key[0] != metadata["uid"]:
            before = None
        if pod is None:
            return before
        config_map, default = _mounted(pod)
        label = labels.get(CONFIG_LABEL, "")
        key = (metadata["uid"], pod["metadata"]["uid"], config_map, label or default, labels.get(MIG_LABEL, ""))
        if before is not None and before.key == key:
            return before
        running = before if before is not None and before.key[1] == key[1] else None
        config, hold = _read(pod, config_map, label, default, read, running)
        started = Started(key, config, now, variable(pod, "MIG_STRATEGY"), hold)
        if hold is None:
            # A failed start is tried again, with what the ConfigMap says then.
            self._started[name, program] = started
        return started


def _mounted(pod: Object) -> tuple[str, str]:
    """Return a pod's ConfigMap and the entry that its config-manager takes by default."""
    manager = next((entry for entry in pod["spec"]["containers"] if entry["name"] == CONFIG_MANAGER), None)
    if manager is None:
        return "", ""
    volumes = pod["spec"].get("volumes") or []
    config_map = next((volume["configMap"]["name"] for volume in volumes if volume.get("configMap")), "")
    variables = {entry["name"]: entry.get("value") or "" for entry in manager.get("env") or []}
    return config_map, str(variables.get("DEFAULT_CONFIG", ""))


def _read(
    pod: Object, config_map: str, label: str, default: str, read: Read, running: Started | None
) -> tuple[PluginConfig | None, Hold | None]:
    if not config_map:
        return PluginConfig(), None
    data, before, entry = read(config_map), running.config if running is not None else None, label or default
    if data is None:
        message = f'MountVolume.SetUp failed for volume "{config_map}" : configmap "{config_map}" not found'
        return before, None if running else Hold("", CREATES, message, event="FailedMount")
    manager = CONFIG_MANAGER if running is not None else CONFIG_INIT
    if not data:
        return before, Hold(manager, CRASHES, f"no configuration files available (ConfigMap {config_map})")
    if entry and entry not in data:
        source = "" if label else f", where DEFAULT_CONFIG is {default}"
        message = f"specified config {label} does not exist (ConfigMap {config_map}{source})"
        return before, Hold(manager, CRASHES, message)
    try:
        return (parse(data[entry]) if entry else PluginConfig()), None
    except PluginConfigError as error:
        return None, Hold(pod["spec"]["containers"][0]["name"], CRASHES, f"{error} (ConfigMap {config_map}, {entry})")
