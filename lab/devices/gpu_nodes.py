"""GPUs of all KWOK nodes: the programs that serve them, played when something has changed.

The programs are node feature discovery, GKE's own device plugin, the GPU Operator's controller and
its operands. Each program acts as long as its pod runs.

Simplified: while both plugins serve a node, NVIDIA's counts.

Answers to (read):
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/cm/devicemanager (manager.go,
    plugin/v1beta1: of two device plugins that register the same resource, the one that registered
    last counts)
Answers to (read): https://github.com/kubernetes-sigs/node-feature-discovery/tree/v0.19.0 (the
    master writes the labels, those of GPU feature discovery too; they go with the DaemonSet that
    found them, and with the chart)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from berth.components.cluster.api import NODES, Object, within
from berth.lab.devices import gpus, kubelet, node_features, operands
from berth.lab.devices.api import STRATEGIC_PATCH, Api, now, path_of
from berth.lab.devices.device_plugins import DevicePlugins, Started
from berth.lab.devices.gpu_cluster import Programs, is_fake, look, runs_installer
from berth.lab.devices.gpu_operator import FEATURES
from berth.lab.devices.gpus import Instances, MigError, UnknownLayoutError
from berth.lab.devices.kubelet import CRASHES, Hold
from berth.lab.devices.operand_objects import DISCOVERY, MIG_MANAGER, MPS_DAEMON, PLUGIN, VALIDATOR
from berth.lab.devices.reconciler import POLICIES, Controller, Seen

# The kubelet starts a failed container again.
_AGAIN_SECONDS = 2.0

_log = logging.getLogger("berth.lab.devices.gpu")


class GpuNodes:
    """Node feature discovery, the GPU Operator and the device plugins of one lab."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._plugins = DevicePlugins()
        self._controller = Controller(api)
        self._logged: dict[str, str] = {}
        self._mig: dict[str, Instances] = {}
        self._single: dict[str, tuple[frozenset[str], str]] = {}

    def step(self) -> float | None:
        """Look and act once; return seconds after which to look again even without a change."""
        nodes = [node for node in self._api.list(NODES) if is_fake(node)]
        names, uids = ({node["metadata"][key] for node in nodes} for key in ("name", "uid"))
        self._plugins.retain(names)
        self._logged = {name: text for name, text in self._logged.items() if name in names}
        self._single = {name: single for name, single in self._single.items() if name in names}
        self._mig = {uid: mig for uid, mig in self._mig.items() if uid in uids}
        alive = [policy for policy in self._api.list(POLICIES) if not policy["metadata"].get("deletionTimestamp")]
        # The oldest ClusterPolicy is the one that counts.
        policy = min(
            alive, key=lambda policy: [policy["metadata"][key] for key in ("creationTimestamp", "name")], default=None
        )
        programs = look(self._api)
        held: set[str] = set()
        for node in nodes:
            held |= self._play(node, programs)
        if policy is None or not programs.operator:
            self._controller.stop()
        else:
            labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
            self._controller.act(Seen(labels, policy, programs.operator, programs.operands(), held))
        return _AGAIN_SECONDS if held else None

    def refusal(self, pod: Mapping[str, Any]) -> str:
        """Return why a node's plugin gives a pod no devices; empty if it does. Sends no request."""
        single, since = self._single.get(pod["spec"].get("nodeName") or "", (frozenset(), ""))
        return kubelet.refusal(dict(pod), single, since) if single else ""

    def admit(self, pod: Object) -> None:
        """Fail a pod that its node's plugin gives no devices."""
        message = self.refusal(pod)
        change = kubelet.rejection(message, now())
        if message and self._api.patch(path_of(pod) + "/status", change, STRATEGIC_PATCH):
            _log.info("pod %s/%s: %s", pod["metadata"]["namespace"], pod["metadata"]["name"], message)
            self._api.event(pod, "kubelet", "Warning", kubelet.REFUSED, message)

    def _play(self, node: Object, programs: Programs) -> set[str]:
        """Play the programs on a node; return the DaemonSets whose pod there is not ready."""
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        pods, expected = programs.pods.get(name, {}), programs.operands_of(node)
        installer = runs_installer(programs.daemonsets, labels)
        holds = operands.blocked(labels, {**expected, **pods}, installer=installer)
        state, mig = self._cut(node, pods.get(MIG_MANAGER) if MIG_MANAGER not in holds else None)
        started: dict[str, Started | None] = {}
        for program in (PLUGIN, DISCOVERY, MPS_DAEMON):
            if program in holds or not (program in pods or program in expected):
                self._plugins.forget(name, program)
                continue
            started[program] = start = self._plugins.start(node, program, pods.get(program), now(), self._reader(pods))
            if start is not None and start.hold is not None:
                holds[program] = start.hold
        resources = {**gpus.gke_devices(labels), **self._serve(node, pods, started, mig, holds)}
        if VALIDATOR in pods and VALIDATOR not in holds:
            hold = operands.validation(resources, pods[VALIDATOR])
            holds |= {VALIDATOR: hold} if hold else {}
        for program, pod in pods.items():
            self._hold(pod, holds.get(program))
        found: dict[str, str] = {}
        discovery = started.get(DISCOVERY)
        if discovery is not None and discovery.config is not None and DISCOVERY in pods:
            version = operands.driver_version({key: pod for key, pod in pods.items() if key not in holds})
            found = operands.features(labels, discovery.strategy, discovery.config, mig, version)
        self._label(node, state, self._discovered(node, found, programs, expected=DISCOVERY in expected))
        self._show(node, resources)
        return set(holds)

    def _cut(self, node: Object, manager: Object | None) -> tuple[dict[str, str], Instances]:
        """Return the label that the MIG manager sets on a node, and each GPU's MIG instances."""
        metadata, labels = node["metadata"], node["metadata"].get("labels") or {}
        uid = metadata["uid"]
        # An earlier process of this controller has cut the GPUs as the label says.
        present = self._mig.setdefault(uid, gpus.cut(labels))
        if manager is None:
            return {}, present
        if kubelet.variable(manager, "CONFIG_FILE"):
            self._warn(metadata["name"], "the lab does not know MIG layouts of a ConfigMap; GPUs stay as they are")
            return {}, present
        try:
            self._mig[uid], asked = gpus.instances(labels, present)
        except (MigError, UnknownLayoutError) as error:
            self._warn(metadata["name"], f"MIG manager: {error}")
            return {gpus.MIG_STATE: gpus.FAILED} if isinstance(error, MigError) else {}, present
        return {gpus.MIG_STATE: gpus.SUCCESS} if asked else {}, self._mig[uid]

    def _reader(self, pods: Mapping[str, Object]) -> Callable[[str], Mapping[str, str] | None]:
        """Return a function that reads ConfigMaps of the operands' namespace."""
        folder = within(next((pod["metadata"]["namespace"] for pod in pods.values()), ""), "/api/v1/configmaps")

        def read(name: str) -> Mapping[str, str] | None:
            found = self._api.get(f"{folder}/{name}")
            return None if found is None else found.get("data") or {}

        return read

    def _serve(
        self,
        node: Object,
        pods: Mapping[str, Object],
        started: Mapping[str, Started | None],
        mig: Instances,
        holds: dict[str, Hold],
    ) -> Mapping[str, int]:
        """Return the devices that NVIDIA's plugin registers on a node; add a hold where it ends."""
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        plugin, daemon = started.get(PLUGIN), started.get(MPS_DAEMON)
        if plugin is None or plugin.config is None:
            self._single.pop(name, None)
            return {}
        mps = daemon is not None and daemon.config is not None
        served = operands.serve(labels, plugin.strategy, plugin.config, mig, mps=mps)
        if served.problem and PLUGIN in pods:
            holds[PLUGIN] = Hold(pods[PLUGIN]["spec"]["containers"][0]["name"], CRASHES, served.problem)
        self._single[name] = (served.single, plugin.since)
        return served.resources

    @staticmethod
    def _discovered(
        node: Object, found: Mapping[str, str], programs: Programs, *, expected: bool
    ) -> dict[str, str] | None:
        """Return labels that node feature discovery gives a node; None where it leaves them.

        Among them are labels that GPU feature discovery has found, if it is expected to run there.
        """
        if not programs.master:
            # The chart's last hook removes the labels; a master that only stopped leaves them.
            return None if programs.installed or programs.discovery_workers() else {}
        owned = node_features.owned(node["metadata"])
        of_worker: dict[str, str] = {}
        if node["metadata"]["name"] in programs.workers:
            of_worker = node_features.found(node["metadata"].get("labels") or {})
        elif programs.discovers(node):
            of_worker = {key: value for key, value in owned.items() if key.startswith(FEATURES)}
        if not found and expected:
            return of_worker | {key: value for key, value in owned.items() if not key.startswith(FEATURES)}
        return {**of_worker, **found}

    def _hold(self, pod: Object, hold: Hold | None) -> None:
        """Show in a pod's status that it is not ready, or let it become ready."""
        change = kubelet.status_change(pod, hold, now())
        if not change or not self._api.patch(path_of(pod) + "/status", change, STRATEGIC_PATCH) or hold is None:
            return
        _log.warning("pod %s on node %s: %s", pod["metadata"]["name"], pod["spec"]["nodeName"], hold.message)
        if reason := hold.event or kubelet.EVENTS.get(hold.reason, ""):
            self._api.event(pod, "kubelet", "Warning", reason, hold.message)

    def _label(self, node: Object, state: Mapping[str, str], features: dict[str, str] | None) -> None:
        change = node_features.label_change(node["metadata"], features) if features is not None else {}
        labels = node["metadata"].get("labels") or {}
        new = {key: value for key, value in state.items() if labels.get(key) != value}
        if new:
            change["labels"] = {**(change.get("labels") or {}), **new}
        if change and self._api.patch(f"{NODES}/{node['metadata']['name']}", {"metadata": change}):
            after = {**labels, **(change.get("labels") or {})}
            node["metadata"]["labels"] = {key: value for key, value in after.items() if value is not None}

    def _show(self, node: Object, resources: Mapping[str, int]) -> None:
        name, change = node["metadata"]["name"], gpus.status_change(resources, node.get("status") or {})
        if change and self._api.patch(f"{NODES}/{name}/status", {"status": change}):
            shown = ", ".join(f"{resource}={count}" for resource, count in resources.items()) or "none"
            _log.info("node %s: devices %s", name, shown)

    def _warn(self, name: str, message: str) -> None:
        """Log a warning about a node, unless it is the node's last one."""
        if self._logged.get(name) != message:
            _log.warning("node %s: %s", name, message)
            self._logged[name] = message
