"""NVIDIA's device plugin on each node: what it read from its ConfigMap when it started, and when it starts anew.

The plugin does not watch its ConfigMap. It reads it when its pod starts, when the node's label names another entry (the
config-manager beside it watches that), and when the MIG manager has cut the GPUs anew. A plugin also starts anew with this
process, which remembers what it read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.devices import gpu_operator
from lab.devices.operand_objects import mounted
from lab.devices.plugin_config import PluginConfig, PluginConfigError, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Object = dict[str, Any]


class MissingError(Exception):
    """A plugin's pod can't start: its ConfigMap is not there."""


@dataclass(frozen=True)
class Started:
    """A device plugin as it started on a node.

    Attributes:
        key: what it started from: the node's uid first, then the pod's; with another key it starts anew.
        config: what it read; nothing if it ends at once, again and again.
        problem: what is wrong; a plugin with a config works nevertheless.
        since: when that was (RFC 3339).
    """

    key: tuple[str, ...]
    config: PluginConfig | None
    problem: str
    since: str


class DevicePlugins:
    """The plugins of all nodes."""

    def __init__(self) -> None:
        self._started: dict[str, Started] = {}

    def forget(self, node: str) -> None:
        """No plugin runs on a node any more."""
        self._started.pop(node, None)

    def keep(self, nodes: set[str]) -> None:
        """Forget all nodes but these."""
        self._started = {name: started for name, started in self._started.items() if name in nodes}

    def start(
        self, node: Object, pod: Object | None, now: str, read: Callable[[str], Mapping[str, str] | None]
    ) -> Started | None:
        """The plugin that runs on a node, started anew where that is due; nothing if none has run there yet.

        Args:
            node: the node.
            pod: the plugin's pod that runs there; between two pods the devices of the first one stay.
            now: the time (RFC 3339).
            read: gives a ConfigMap's data by its name, or None if it is not there.

        Raises:
            MissingError: the plugin's pod waits for its ConfigMap.
        """
        metadata = node["metadata"]
        name, labels = metadata["name"], metadata.get("labels") or {}
        before = self._started.get(name)
        if before is not None and before.key[0] != metadata["uid"]:
            before = None
        if pod is None:
            return before
        config_map, default = mounted(pod)
        entry = labels.get(gpu_operator.CONFIG) or default
        mig = labels.get(gpu_operator.MIG_CONFIG, "")
        key = (metadata["uid"], pod["metadata"]["uid"], config_map, entry, mig)
        if before is not None and before.key == key:
            return before
        config: PluginConfig | None = PluginConfig()
        problem = ""
        if config_map:
            data = read(config_map)
            if data is None:
                raise MissingError(f"the device plugin's pod waits for ConfigMap {config_map}, which is not there")
            if entry and entry not in data:
                # The sidecar that reads labels ends; a plugin that runs already goes on with what it has.
                problem = f"config-manager ends: specified config {entry} does not exist (ConfigMap {config_map})"
                config = before.config if before is not None and before.key[1] == key[1] else None
            elif entry:
                try:
                    config = parse(data[entry])
                except PluginConfigError as error:
                    config, problem = None, f"the device plugin ends: {error} (ConfigMap {config_map}, {entry})"
        self._started[name] = Started(key, config, problem, now)
        return self._started[name]
