"""The GPUs of all KWOK nodes: looks at the cluster when something changed, and acts by the rules of the programs that run there.

The programs are node feature discovery, GKE's own device plugin, the GPU Operator's controller (`gpu_operator.py`) and its operands
(`operands.py`). Each acts as long as its pod runs. A real node of the lab is left alone: none of them runs there.

Answers to (read): https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/cm/devicemanager (manager.go, plugin/v1beta1: of two
    device plugins that register the same resource, the one that registered last counts)
Answers to (read): https://github.com/kubernetes-sigs/node-feature-discovery/tree/v0.19.0 (the master writes the labels, those of GPU
    feature discovery too; they go with the DaemonSet that found them, and with the chart)
Answers to (believed): NVIDIA's plugin registers after GKE's, which is there when the node starts; when NVIDIA's goes, GKE's counts again.
    A node of GKE's that both plugins serve for a while would settle it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from berth.components.cluster.api import ClusterApi, NotFoundError
from berth.lab.devices import gke_device_plugin, node_features, operand_objects, operands, pod_states
from berth.lab.devices.admission import REASON, failed, refusal
from berth.lab.devices.advertised import status_change
from berth.lab.devices.cluster_events import now, warn
from berth.lab.devices.device_plugins import DevicePlugins, Started
from berth.lab.devices.gpu_cluster import Seen, look
from berth.lab.devices.gpu_operator import FEATURES
from berth.lab.devices.operand_objects import DISCOVERY, MIG_MANAGER, MPS_DAEMON, PLUGIN, VALIDATOR
from berth.lab.devices.operands import CRASHES, Hold, MigError, UnknownLayoutError
from berth.lab.devices.reconciler import Reconciler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Object = dict[str, Any]

KWOK_ANNOTATION = "kwok.x-k8s.io/node"

_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
# A container that failed is started again by the kubelet. And a ClusterPolicy of which no event has come is looked at:
# kopf looks for a kind when its CRD changes, which may be before the API server serves it, and never again.
_AGAIN_SECONDS = 2.0

_log = logging.getLogger("berth.lab.devices.gpu")


class GpuNodes:
    """Plays node feature discovery, the GPU Operator and the device plugins of one lab.

    Args:
        kubeconfig: the administrator's kubeconfig of the lab.
        told_of: whether changes of an object, by its uid, bring another look.
    """

    def __init__(self, kubeconfig: Path, told_of: Callable[[str], bool]) -> None:
        self._kubeconfig = kubeconfig
        self._told_of = told_of
        self._connected: ClusterApi | None = None
        self._plugins = DevicePlugins()
        self._reconciler = Reconciler()
        self._refused: set[str] = set()
        self._said: dict[str, str] = {}
        self._shown: dict[str, Mapping[str, int]] = {}
        self._mig: dict[str, Mapping[str, int]] = {}
        self._single: dict[str, tuple[frozenset[str], str]] = {}

    @property
    def _cluster(self) -> ClusterApi:
        if self._connected is None:
            self._connected = ClusterApi(self._kubeconfig.read_text())
        return self._connected

    def step(self) -> float | None:
        """One look at the cluster, and the changes that follow.

        Returns:
            Seconds after which to look again even if nothing changes, or None.

        Raises:
            ClusterError: the API server does not answer, or refuses.
        """
        nodes = [node for node in self._listed("/api/v1/nodes") if _kwok(node)]
        names = {node["metadata"]["name"] for node in nodes}
        self._plugins.keep(names)
        for remembered in (self._said, self._shown, self._single):
            for name in [name for name in remembered if name not in names]:
                del remembered[name]
        self._mig = {uid: mig for uid, mig in self._mig.items() if uid in {node["metadata"]["uid"] for node in nodes}}
        policy = next(iter(self._policies()), None)
        seen = look(self._listed)
        held: set[str] = set()
        for node in nodes:
            held |= self._play(node, seen)
        if policy is None or not seen.operator:
            self._reconciler.stop()
        else:
            self._reconciler.act(self._cluster, nodes, policy, seen.operator, seen.operands(), held)
        unseen = policy is not None and not self._told_of(policy["metadata"]["uid"])
        return _AGAIN_SECONDS if held or unseen else None

    def may_refuse(self, pod: Mapping[str, Any]) -> bool:
        """Whether a pod is on a node whose plugin is strict; no call of the API server."""
        single, since = self._single.get(pod["spec"].get("nodeName") or "", (frozenset(), ""))
        return bool(single) and bool(refusal(pod, single, since))

    def admit(self, pod: Object) -> None:
        """Fail a pod that its node's plugin gives no devices.

        Raises:
            ClusterError: the API server does not answer, or refuses.
        """
        single, since = self._single.get(pod["spec"].get("nodeName") or "", (frozenset(), ""))
        message = refusal(pod, single, since) if single else ""
        if not message or not self._patch(_path(pod) + "/status", failed(message, now()), _STRATEGIC):
            return
        metadata = pod["metadata"]
        if metadata["uid"] not in self._refused:
            self._refused.add(metadata["uid"])
            _log.info("pod %s/%s: %s", metadata["namespace"], metadata["name"], message)
            warn(self._cluster, pod, "Pod", "kubelet", REASON, message)

    def forget_pod(self, uid: str) -> None:
        """A pod is gone."""
        self._refused.discard(uid)

    def _listed(self, path: str, **query: str) -> list[Object]:
        return self._cluster.list(path, **query)[0]

    def _policies(self) -> list[Object]:
        """The ClusterPolicies, the one that counts first; none while their kind is not there."""
        found = self._listed(_POLICIES)
        alive = [policy for policy in found if not policy["metadata"].get("deletionTimestamp")]
        return sorted(alive, key=lambda each: (str(each["metadata"]["creationTimestamp"]), each["metadata"]["name"]))

    def _play(self, node: Object, seen: Seen) -> set[str]:
        """Play the programs on one node.

        Returns:
            Names of the DaemonSets whose pod on the node is not ready.
        """
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        pods = seen.pods.get(name, {})
        holds = operands.blocked(labels, {**seen.coming(node), **pods}, installer=seen.installer(labels))
        state, mig = self._cut(node, pods.get(MIG_MANAGER) if MIG_MANAGER not in holds else None)
        started = {
            program: self._start(node, program, pods, holds, seen) for program in (PLUGIN, DISCOVERY, MPS_DAEMON)
        }
        resources = {**gke_device_plugin.devices(labels), **self._serve(node, pods, started, mig, holds)}
        if VALIDATOR in pods and VALIDATOR not in holds:
            waits = operands.validation(resources, pods[VALIDATOR])
            holds |= {VALIDATOR: waits} if waits else {}
        for program, pod in pods.items():
            self._hold(pod, holds.get(program))
        found: dict[str, str] = {}
        discovery = started[DISCOVERY]
        if discovery is not None and discovery.config is not None and DISCOVERY in pods:
            version = operands.driver_version({key: pod for key, pod in pods.items() if key not in holds})
            found = operands.features(labels, discovery.strategy, discovery.config, mig, version)
        self._label(node, state, self._discovered(node, found, seen))
        self._show(node, resources)
        return set(holds)

    def _cut(self, node: Object, manager: Object | None) -> tuple[dict[str, str], Mapping[str, int]]:
        """The state that the MIG manager shows of itself on a node, and the MIG instances of each GPU there."""
        metadata, labels = node["metadata"], node["metadata"].get("labels") or {}
        uid = metadata["uid"]
        if uid not in self._mig:
            # What an earlier process of this controller had cut is what the label says it had.
            done = labels.get(operands.MIG_STATE) == operands.SUCCESS
            self._mig[uid] = operands.cut(labels) if done else {}
        if manager is None:
            return {}, self._mig[uid]
        if operands.variable(manager, "CONFIG_FILE"):
            self._say(metadata["name"], "MIG layouts of a ConfigMap are unknown to the lab; GPUs stay as they are")
            return {}, self._mig[uid]
        try:
            self._mig[uid], asked = operands.instances(labels, self._mig[uid])
        except (MigError, UnknownLayoutError) as error:
            self._say(metadata["name"], f"MIG manager: {error}")
            return {operands.MIG_STATE: operands.FAILED} if isinstance(error, MigError) else {}, self._mig[uid]
        return {operands.MIG_STATE: operands.SUCCESS} if asked else {}, self._mig[uid]

    def _start(
        self, node: Object, program: str, pods: Mapping[str, Object], holds: dict[str, Hold], seen: Seen
    ) -> Started | None:
        """A program as it runs on a node; adds to the holds why its pod is not ready."""
        name = node["metadata"]["name"]
        if program in holds or (program not in pods and not seen.comes(program, node)):
            self._plugins.forget(name, program)
            return None
        pod = pods.get(program)
        namespace = pod["metadata"]["namespace"] if pod is not None else ""
        started = self._plugins.start(node, program, pod, now(), lambda config: self._data(namespace, config))
        if started is not None and started.hold is not None:
            holds[program] = started.hold
        return started

    def _serve(
        self,
        node: Object,
        pods: Mapping[str, Object],
        started: Mapping[str, Started | None],
        mig: Mapping[str, int],
        holds: dict[str, Hold],
    ) -> Mapping[str, int]:
        """The devices that NVIDIA's plugin registers on a node."""
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        plugin, daemon = started[PLUGIN], started[MPS_DAEMON]
        if plugin is None or plugin.config is None:
            self._single.pop(name, None)
            return {}
        mps = daemon is not None and daemon.config is not None
        served = operands.serve(labels, plugin.strategy, plugin.config, mig, mps=mps)
        if served.problem and PLUGIN in pods:
            holds[PLUGIN] = Hold(pods[PLUGIN]["spec"]["containers"][0]["name"], CRASHES, served.problem)
        self._single[name] = (served.single, plugin.since)
        return served.resources

    def _discovered(self, node: Object, found: Mapping[str, str], seen: Seen) -> dict[str, str] | None:
        """The labels that node feature discovery's master gives a node; None where it leaves them as they are."""
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        if not seen.master:
            # The chart's last hook takes the labels away; a master that only stopped leaves them.
            return None if seen.installed or seen.workers_wanted() else {}
        listed = str((node["metadata"].get("annotations") or {}).get(operand_objects.OWNED) or "")
        owned = {key: labels[key] for key in listed.split(",") if key in labels}
        if name in seen.workers:
            wanted = node_features.found(labels)
        elif seen.worker_comes(node):
            wanted = {key: value for key, value in owned.items() if key.startswith(FEATURES)}
        else:
            wanted = {}
        if not found and seen.comes(DISCOVERY, node):
            return wanted | {key: value for key, value in owned.items() if not key.startswith(FEATURES)}
        return {**wanted, **found}

    def _data(self, namespace: str, name: str) -> dict[str, str] | None:
        found = self._cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        return None if found is None else dict(found.get("data") or {})

    def _hold(self, pod: Object, hold: Hold | None) -> None:
        """Show in a pod's status that it is not ready, or let it become ready."""
        change = pod_states.change(pod, hold, now())
        if not change or not self._patch(_path(pod) + "/status", change, _STRATEGIC) or hold is None:
            return
        _log.warning("pod %s on node %s: %s", pod["metadata"]["name"], pod["spec"]["nodeName"], hold.message)
        reason = hold.event or pod_states.EVENTS.get(hold.reason, "")
        if reason:
            warn(self._cluster, pod, "Pod", "kubelet", reason, hold.message)

    def _label(self, node: Object, state: Mapping[str, str], wanted: dict[str, str] | None) -> None:
        change = operand_objects.label_change(node["metadata"], wanted) if wanted is not None else {}
        labels = node["metadata"].get("labels") or {}
        new = {key: value for key, value in state.items() if labels.get(key) != value}
        if new:
            change["labels"] = {**(change.get("labels") or {}), **new}
        if change and self._patch(_path(node), {"metadata": change}, _MERGE):
            now_there = {**labels, **(change.get("labels") or {})}
            node["metadata"]["labels"] = {key: value for key, value in now_there.items() if value is not None}

    def _show(self, node: Object, resources: Mapping[str, int]) -> None:
        name, status = node["metadata"]["name"], node.get("status") or {}
        change = status_change(resources, status.get("capacity") or {}, status.get("allocatable") or {})
        if not change or not self._patch(_path(node) + "/status", {"status": change}, _MERGE):
            return
        if self._shown.get(name) != resources:
            self._shown[name] = resources
            shown = ", ".join(f"{resource}={count}" for resource, count in resources.items()) or "none"
            _log.info("node %s: devices %s", name, shown)

    def _patch(self, path: str, change: Object, kind: str) -> bool:
        """Patch an object; False if it is gone."""
        try:
            self._cluster.request("PATCH", path, change, content_type=kind)
        except NotFoundError:
            return False
        return True

    def _say(self, name: str, message: str) -> None:
        if self._said.get(name) != message:
            _log.warning("node %s: %s", name, message)
            self._said[name] = message


def _path(thing: Object) -> str:
    metadata = thing["metadata"]
    if "namespace" in metadata:
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    return f"/api/v1/nodes/{metadata['name']}"


def _kwok(node: Object) -> bool:
    metadata = node["metadata"]
    return (metadata.get("annotations") or {}).get(KWOK_ANNOTATION) == "fake" and not metadata.get("deletionTimestamp")
