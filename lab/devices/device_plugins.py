"""Configuration that the programs which share GPUs have read from the device plugin's ConfigMap, and when they read it again.

The device plugin, GPU feature discovery and the MPS control daemon read one entry of the ConfigMap: when their pod starts, and when
the node's label names another entry (the config-manager beside them watches that). An edit of the entry itself is not noticed by a
program that runs. The MIG manager takes the pods away while it cuts GPUs. A new process of the lab's controller counts as a start.

Answers to (read): https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/cmd/config-manager/main.go (label before default, default
    before an empty config; a name that is not in the ConfigMap ends the config-manager: the init container of a pod that starts, the
    container beside a program that runs on)
Answers to (recorded): ../shared/upstream/gpu-operator/recordings A2, D1, I1 (the variables of the config-manager; a changed entry
    changes no DaemonSet)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from berth.lab.devices.gpu_operator import MIG_CONFIG
from berth.lab.devices.operand_objects import CONFIG_INIT, CONFIG_MANAGER
from berth.lab.devices.operands import CRASHES, CREATES, Hold, variable
from berth.lab.devices.plugin_config import PluginConfig, PluginConfigError, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Object = dict[str, Any]

CONFIG = "nvidia.com/device-plugin.config"
"""Label of a node: the entry that its programs read."""


@dataclass(frozen=True)
class Started:
    """A program as it started on a node.

    Attributes:
        key: what it started from: the node's uid first, then the pod's; with another key it starts again.
        config: what it read; None where it does not run.
        since: when that was (RFC 3339).
        strategy: MIG strategy that its pod says; empty where the config says it.
        hold: why its pod is not ready; a program with a config works nevertheless.
    """

    key: tuple[str, ...]
    config: PluginConfig | None
    since: str
    strategy: str = ""
    hold: Hold | None = None


def mounted(pod: Mapping[str, Any]) -> tuple[str, str]:
    """The ConfigMap that a pod has, and the entry that its config-manager takes without a label; empty for none."""
    manager = next((each for each in pod["spec"]["containers"] if each["name"] == CONFIG_MANAGER), None)
    if manager is None:
        return "", ""
    names = [each["configMap"]["name"] for each in pod["spec"].get("volumes") or [] if each.get("configMap")]
    variables = {each["name"]: each.get("value") or "" for each in manager.get("env") or []}
    return (names[0] if names else "", str(variables.get("DEFAULT_CONFIG", "")))


class DevicePlugins:
    """The programs of all nodes: what each has read."""

    def __init__(self) -> None:
        self._started: dict[tuple[str, str], Started] = {}

    def forget(self, node: str, program: str) -> None:
        """A program does not run on a node any more."""
        self._started.pop((node, program), None)

    def keep(self, nodes: set[str]) -> None:
        """Forget all nodes but these."""
        self._started = {key: started for key, started in self._started.items() if key[0] in nodes}

    def start(
        self, node: Object, program: str, pod: Object | None, now: str, read: Callable[[str], Mapping[str, str] | None]
    ) -> Started | None:
        """The program that runs on a node, started again where that is due; nothing if none has run there yet.

        Args:
            node: the node.
            program: name of the program's DaemonSet.
            pod: the program's pod that runs there; between two pods the devices of the first one stay.
            now: the time (RFC 3339).
            read: gives a ConfigMap's data by its name, or None if it is not there.
        """
        metadata = node["metadata"]
        name, labels = metadata["name"], metadata.get("labels") or {}
        before = self._started.get((name, program))
        if before is not None and before.key[0] != metadata["uid"]:
            before = None
        if pod is None:
            return before
        config_map, default = mounted(pod)
        label = labels.get(CONFIG, "")
        key = (metadata["uid"], pod["metadata"]["uid"], config_map, label or default, labels.get(MIG_CONFIG, ""))
        if before is not None and before.key == key:
            return before
        runs = before if before is not None and before.key[1] == key[1] else None
        config, hold = self._read(pod, config_map, label, default, read, runs)
        started = Started(key, config, now, variable(pod, "MIG_STRATEGY"), hold)
        if hold is None:
            # What fails is tried again, with what the ConfigMap says then.
            self._started[name, program] = started
        return started

    @staticmethod
    def _read(
        pod: Object,
        config_map: str,
        label: str,
        default: str,
        read: Callable[[str], Mapping[str, str] | None],
        runs: Started | None,
    ) -> tuple[PluginConfig | None, Hold | None]:
        if not config_map:
            return PluginConfig(), None
        data = read(config_map)
        running = runs.config if runs is not None else None
        if data is None:
            message = f'MountVolume.SetUp failed for volume "{config_map}" : configmap "{config_map}" not found'
            return running, None if runs else Hold("", CREATES, message, event="FailedMount")
        entry = label or default
        manager = CONFIG_MANAGER if runs is not None else CONFIG_INIT
        if not data:
            return running, Hold(manager, CRASHES, f"no configuration files available (ConfigMap {config_map})")
        if entry and entry not in data:
            message = f"specified config {label} does not exist"
            own = "" if label else f", where DEFAULT_CONFIG is {default}"
            return running, Hold(manager, CRASHES, f"{message} (ConfigMap {config_map}{own})")
        try:
            return (parse(data[entry]) if entry else PluginConfig()), None
        except PluginConfigError as error:
            main = pod["spec"]["containers"][0]["name"]
            return None, Hold(main, CRASHES, f"{error} (ConfigMap {config_map}, {entry})")
