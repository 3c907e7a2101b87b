"""GPUs of all KWOK nodes: the programs that serve them, played when something has changed.

The programs are node feature discovery, GKE's own device plugin, the GPU Operator's controller and
its operands. Each program acts on the nodes that its DaemonSet covers.

Simplified: while both plugins serve a node, NVIDIA's counts.
"""

import logging
from collections.abc import Mapping

from berth.components.cluster.api import NODES, PODS, Object
from berth.components.hardware.names import MIG_LABEL
from berth.lab.api import DAEMONSETS, DEPLOYMENTS, POLICIES, Api
from berth.lab.devices import gpus, kubelet, node_features, operands
from berth.lab.devices.gpu_cluster import covers, is_fake, runs_installer
from berth.lab.devices.kubelet import Hold
from berth.lab.devices.operand_objects import DISCOVERY, MIG_MANAGER, OPERANDS, PLUGIN
from berth.lab.devices.plugin_config import PluginConfigError, config_of
from berth.lab.devices.reconciler import reconcile

# The kubelet starts a failed container again.
_AGAIN_SECONDS = 2.0
_OPERANDS = frozenset(operand.name for operand in OPERANDS)

_log = logging.getLogger("berth.lab.devices.gpu")


class GpuNodes:
    """Node feature discovery, the GPU Operator and the device plugins of one lab."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def step(self) -> float | None:
        """Look and act once; return seconds after which to look again even without a change."""
        nodes = [node for node in self._api.list(NODES) if is_fake(node)]
        daemonsets = self._api.list(DAEMONSETS)
        pods: dict[str, list[Object]] = {}
        for pod in self._api.list(PODS, labelSelector=f"app in ({','.join(sorted(_OPERANDS))})"):
            pods.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
        held = False
        for node in nodes:
            holds = self._play(node, daemonsets)
            held |= bool(holds)
            for pod in pods.get(node["metadata"]["name"], []):
                kubelet.show(self._api, pod, holds.get(pod["metadata"]["labels"]["app"]))
        self._control(nodes, daemonsets)
        return _AGAIN_SECONDS if held else None

    def _control(self, nodes: list[Object], daemonsets: list[Object]) -> None:
        """Be the operator's controller, where it runs and a ClusterPolicy is there."""
        operators = self._api.list(DEPLOYMENTS, fieldSelector="metadata.name=gpu-operator")
        running = [
            entry for entry in operators if (entry.get("status") or {}).get("availableReplicas")
        ]
        policies = [
            entry
            for entry in self._api.list(POLICIES)
            if not entry["metadata"].get("deletionTimestamp")
        ]
        if running and policies:
            # The oldest ClusterPolicy is the one that counts.
            policy = min(
                policies,
                key=lambda entry: [entry["metadata"][key] for key in ("creationTimestamp", "name")],
            )
            namespace = running[0]["metadata"]["namespace"]
            labels = {
                node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes
            }
            own = {
                entry["metadata"]["name"]: entry
                for entry in daemonsets
                if entry["metadata"]["name"] in _OPERANDS
            }
            reconcile(self._api, policy, namespace, labels, own)

    def _play(self, node: Object, daemonsets: list[Object]) -> dict[str, Hold]:
        """Play the programs on a node; return why pods of theirs are not ready, by DaemonSet."""
        labels = node["metadata"].get("labels") or {}
        covering = {entry["metadata"]["name"]: entry for entry in daemonsets if covers(entry, node)}
        specs = {
            name: entry["spec"]["template"]["spec"]
            for name, entry in covering.items()
            if name in _OPERANDS
        }
        holds = (
            operands.blocked(labels, specs, installer=runs_installer(daemonsets, labels))
            if specs
            else {}
        )
        state = {}
        if MIG_MANAGER in specs.keys() - holds.keys() and labels.get(MIG_LABEL):
            state[gpus.MIG_STATE] = gpus.state_of(labels)
        mig = gpus.cut({**labels, **state})
        found = {}
        if any(node_features.is_worker(entry) for entry in covering.values()):
            found = node_features.found(labels)
        devices = gpus.gke_devices(labels)
        for program in {PLUGIN, DISCOVERY} & specs.keys() - holds.keys():
            try:
                config = config_of(self._api, covering[program], labels)
            except PluginConfigError as error:
                container = specs[program]["containers"][0]["name"]
                holds[program] = Hold(str(error), "BackOff", container, "CrashLoopBackOff")
                continue
            strategy = operands.strategy_of(specs[program], config)
            if program == PLUGIN:
                devices |= operands.serve(labels, strategy, config, mig)
            else:
                found |= operands.features(labels, strategy, config, mig)
        self._label(node, state, found)
        self._show(node, devices)
        return holds

    def _label(self, node: Object, state: Mapping[str, str], features: dict[str, str]) -> None:
        """Set the label of the MIG manager, and those that node feature discovery has now."""
        change = node_features.label_change(node["metadata"], features)
        labels = node["metadata"].get("labels") or {}
        if new := {key: value for key, value in state.items() if labels.get(key) != value}:
            change["labels"] = {**(change.get("labels") or {}), **new}
        if change and self._api.patch(f"{NODES}/{node['metadata']['name']}", {"metadata": change}):
            after = {**labels, **(change.get("labels") or {})}
            node["metadata"]["labels"] = {
                key: value for key, value in after.items() if value is not None
            }

    def _show(self, node: Object, resources: Mapping[str, int]) -> None:
        name = node["metadata"]["name"]
        change = gpus.status_change(resources, node.get("status") or {})
        if change and self._api.patch(f"{NODES}/{name}/status", {"status": change}):
            shown = (
                ", ".join(f"{resource}={count}" for resource, count in resources.items()) or "none"
            )
            _log.info("node %s: devices %s", name, shown)
