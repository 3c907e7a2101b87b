"""The GPUs of all KWOK nodes: looks at the cluster when something changed, and acts by the rules of the plugins there."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.devices import gke_device_plugin, gpu_operator, operand_objects
from lab.devices.admission import REASON, failed, refusal
from lab.devices.advertised import status_change
from lab.devices.autoscaler import selected
from lab.devices.cluster_events import now, warn
from lab.devices.device_plugins import DevicePlugins, MissingError
from lab.devices.gpu_operator import MigError, Policy
from lab.devices.gpus import GPUS
from lab.plugins.kubernetes.client import APPLY, ApiError, Cluster
from lab.plugins.kubernetes.kubeconfig import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from lab.devices.gpu_operator import Served

Object = dict[str, Any]

KWOK_ANNOTATION = "kwok.x-k8s.io/node"
OPERATOR = "gpu-operator"

_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
_DAEMONSETS = "/apis/apps/v1/namespaces/{}/daemonsets/" + operand_objects.PLUGIN
_INSTALLER = "nvidia-driver-installer"
_DISCOVERY = ("app.kubernetes.io/name", "node-feature-discovery")
# A pod whose ConfigMap is missing is tried again by the kubelet. And a ClusterPolicy of which no event has come is looked at:
# kopf looks for a kind when its CRD changes, which may be before the API server serves it, and never again.
_AGAIN_SECONDS = 2.0

_log = logging.getLogger("lab.devices.gpu")


@dataclass(frozen=True)
class Operator:
    """What the operator works with, at one moment."""

    policy: Policy
    namespace: str
    discovery: bool
    installers: list[Object]
    pods: dict[str, Object]


class GpuNodes:
    """Plays the device plugins of one lab.

    Args:
        kubeconfig: the administrator's kubeconfig of the lab.
        told_of: whether changes of an object, by its uid, bring another look.
    """

    def __init__(self, kubeconfig: Path, told_of: Callable[[str], bool]) -> None:
        self._kubeconfig = kubeconfig
        self._told_of = told_of
        self._connected: Cluster | None = None
        self._plugins = DevicePlugins()
        self._refused: set[str] = set()
        self._said: dict[str, str] = {}
        self._shown: dict[str, Mapping[str, int]] = {}
        self._single: dict[str, tuple[frozenset[str], str]] = {}

    @property
    def _cluster(self) -> Cluster:
        if self._connected is None:
            self._connected = Cluster(load(str(self._kubeconfig)), threading.Event())
        return self._connected

    def step(self) -> float | None:
        """Look once, and act.

        Returns:
            Seconds after which to look again even if nothing changes, or None.

        Raises:
            ProviderError: when the API server does not answer, or refuses.
        """
        nodes = [node for node in self._listed("/api/v1/nodes") if _kwok(node)]
        names = {node["metadata"]["name"] for node in nodes}
        policy = next(iter(self._policies()), None)
        self._plugins.keep(names if policy is not None else set())
        for remembered in (self._said, self._shown, self._single):
            for name in [name for name in remembered if name not in names]:
                del remembered[name]
        operator = self._operator(policy) if policy is not None else None
        problems: dict[str, str] = {}
        count = 0
        missing = False
        for node in nodes:
            labels = node["metadata"].get("labels") or {}
            if policy is None or not gpu_operator.served(labels):
                self._single.pop(node["metadata"]["name"], None)
                self._show(node, gke_device_plugin.devices(labels), {})
            elif operator is not None:
                try:
                    problem = self._serve(node, operator)
                except MissingError as error:
                    problem, missing = str(error), True
                count += gpu_operator.detected(labels)
                if problem:
                    problems[node["metadata"]["name"]] = problem
        if policy is not None and operator is not None:
            self._tell_policy(policy, operand_objects.status(operator.namespace, problems, count, now()))
        unseen = policy is not None and not self._told_of(policy["metadata"]["uid"])
        return _AGAIN_SECONDS if missing or unseen else None

    def may_refuse(self, pod: Mapping[str, Any]) -> bool:
        """Whether a pod is on a node whose plugin is strict; no call of the API server."""
        single, since = self._single.get(pod["spec"].get("nodeName") or "", (frozenset(), ""))
        return bool(single) and bool(refusal(pod, single, since))

    def admit(self, pod: Object) -> None:
        """Fail a pod that its node's plugin gives no devices.

        Raises:
            ProviderError: when the API server does not answer, or refuses.
        """
        single, since = self._single.get(pod["spec"].get("nodeName") or "", (frozenset(), ""))
        message = refusal(pod, single, since) if single else ""
        if not message:
            return
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        try:
            self._cluster.request("PATCH", path, failed(message, now()), content_type=_STRATEGIC)
        except ApiError as error:
            if error.not_found:
                return
            raise
        if metadata["uid"] not in self._refused:
            self._refused.add(metadata["uid"])
            _log.info("pod %s/%s: %s", metadata["namespace"], metadata["name"], message)
            warn(self._cluster, pod, "Pod", "kubelet", REASON, message)

    def forget_pod(self, uid: str) -> None:
        """A pod is gone."""
        self._refused.discard(uid)

    def _listed(self, path: str, **query: str) -> list[Object]:
        items: list[Object] = self._cluster.request("GET", path, query=query).get("items") or []
        return items

    def _policies(self) -> list[Object]:
        """The ClusterPolicies, the one that counts first; none while their kind is not there."""
        try:
            found = self._listed(_POLICIES)
        except ApiError as error:
            if error.not_found:
                return []
            raise
        alive = [policy for policy in found if not policy["metadata"].get("deletionTimestamp")]
        return sorted(alive, key=lambda policy: str(policy["metadata"]["creationTimestamp"]))

    def _operator(self, policy: Object) -> Operator | None:
        """What the operator works with; nothing while it doesn't run: then all stays as it is."""
        found = self._listed("/apis/apps/v1/deployments", fieldSelector=f"metadata.name={OPERATOR}")
        available = [each for each in found if ((each.get("status") or {}).get("availableReplicas") or 0) > 0]
        if not available:
            return None
        namespace = available[0]["metadata"]["namespace"]
        settings = Policy(policy.get("spec") or {})
        daemonsets = self._listed("/apis/apps/v1/daemonsets")
        self._apply_plugin(daemonsets, settings, policy, namespace)
        key, value = _DISCOVERY
        pods = self._listed(f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"app={operand_objects.PLUGIN}")
        return Operator(
            settings,
            namespace,
            discovery=any((each["metadata"].get("labels") or {}).get(key) == value for each in daemonsets),
            installers=[each for each in daemonsets if each["metadata"]["name"].startswith(_INSTALLER)],
            pods={pod["spec"]["nodeName"]: pod for pod in pods if _runs(pod)},
        )

    def _apply_plugin(self, there: list[Object], policy: Policy, owner: Object, namespace: str) -> None:
        wanted = operand_objects.plugin_daemonset(policy, owner, namespace)
        now = next(
            (
                each["metadata"]
                for each in there
                if (each["metadata"]["namespace"], each["metadata"]["name"]) == (namespace, operand_objects.PLUGIN)
            ),
            None,
        )
        path = _DAEMONSETS.format(namespace)
        if not policy.enabled("devicePlugin"):
            if now is not None:
                self._cluster.request("DELETE", path)
            return
        new = wanted["metadata"]["annotations"][operand_objects.HASH]
        owners = [each["uid"] for each in (now or {}).get("ownerReferences") or []]
        same = ((now or {}).get("annotations") or {}).get(operand_objects.HASH) == new
        if now is None or not same or owner["metadata"]["uid"] not in owners:
            query = {"fieldManager": OPERATOR, "force": "true"}
            self._cluster.request("PATCH", path, wanted, query, APPLY)

    def _serve(self, node: Object, operator: Operator) -> str:
        """Bring one node to what the operands would; what is wrong there, or nothing."""
        labels = node["metadata"].get("labels") or {}
        if not operator.discovery and not gpu_operator.detected(labels):
            message = (
                f"GPUs not seen: node feature discovery does not run, and the node has no label {gpu_operator.PCI}"
            )
            self._warn(node, "NodeNotDetected", message)
            self._show(node, {}, {})
            # The operator does not know of the node, and is content.
            return ""
        base = {gpu_operator.PCI: "true", gpu_operator.PRESENT: "true"}
        base[gpu_operator.DEPLOY] = labels.get(gpu_operator.DEPLOY, "true")
        if not operator.policy.enabled("devicePlugin"):
            self._show(node, {}, base)
            return ""
        installer = any(selected(each["spec"]["template"]["spec"], labels) for each in operator.installers)
        problem = gpu_operator.obstacle(labels, operator.policy, installer=installer)
        if problem:
            self._plugins.forget(node["metadata"]["name"])
            return self._fail(node, base, "DriverNotReady", problem)
        gpu = GPUS.get(labels.get(gke_device_plugin.ACCELERATOR, ""))
        try:
            mig = gpu_operator.instances(labels, operator.policy)
        except MigError as error:
            state = {gpu_operator.MIG_STATE: gpu_operator.FAILED}
            return self._fail(node, base | state, "MIGConfigFailed", str(error))
        if gpu is not None and gpu.mig:
            base[gpu_operator.MIG_STATE] = gpu_operator.SUCCESS
        return self._serve_devices(node, operator, base, mig)

    def _serve_devices(self, node: Object, operator: Operator, base: dict[str, str], mig: Mapping[str, int]) -> str:
        try:
            pod = operator.pods.get(node["metadata"]["name"])
            started = self._plugins.start(node, pod, now(), lambda name: self._data(operator.namespace, name))
        except MissingError as error:
            self._fail(node, base, "FailedMount", str(error))
            raise
        if started is None:
            # Labels bring the plugin's pod, and that brings us here again.
            self._show(node, {}, base)
            return "the device plugin's pod does not run yet"
        if started.config is None:
            return self._fail(node, base, "CrashLoopBackOff", started.problem)
        labels = node["metadata"].get("labels") or {}
        served: Served = gpu_operator.serve(labels, operator.policy, started.config, mig)
        if served.problem:
            return self._fail(
                node, {**base, **served.labels}, "CrashLoopBackOff", f"the device plugin ends: {served.problem}"
            )
        self._single[node["metadata"]["name"]] = (served.single, started.since)
        self._warn(node, "CrashLoopBackOff", started.problem)
        self._show(node, served.resources, {**base, **served.labels})
        return started.problem

    def _data(self, namespace: str, name: str) -> dict[str, str] | None:
        try:
            data = self._cluster.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}").get("data")
        except ApiError as error:
            if error.not_found:
                return None
            raise
        return dict(data or {})

    def _fail(self, node: Object, labels: dict[str, str], reason: str, problem: str) -> str:
        """No devices on a node, and an event that says why."""
        self._single.pop(node["metadata"]["name"], None)
        self._warn(node, reason, problem)
        self._show(node, {}, labels)
        return problem

    def _show(self, node: Object, resources: Mapping[str, int], labels: Mapping[str, str]) -> None:
        name = node["metadata"]["name"]
        path = f"/api/v1/nodes/{name}"
        status = node.get("status") or {}
        metadata = operand_objects.label_change(node["metadata"], labels)
        change = status_change(resources, status.get("capacity") or {}, status.get("allocatable") or {})
        try:
            if metadata:
                self._cluster.request("PATCH", path, {"metadata": metadata}, content_type=_MERGE)
            if change:
                self._cluster.request("PATCH", f"{path}/status", {"status": change}, content_type=_MERGE)
        except ApiError as error:
            if not error.not_found:
                raise
        if change and self._shown.get(name) != resources:
            self._shown[name] = resources
            shown = ", ".join(f"{resource}={count}" for resource, count in resources.items()) or "none"
            _log.info("node %s: devices %s", name, shown)

    def _warn(self, node: Object, reason: str, message: str) -> None:
        name = node["metadata"]["name"]
        if message and self._said.get(name) != message:
            _log.warning("node %s: %s", name, message)
            warn(self._cluster, node, "Node", "gpu-operator (simulated)", reason, message)
        self._said[name] = message

    def _tell_policy(self, policy: Object, status: Object) -> None:
        if not operand_objects.same_status(policy.get("status") or {}, status):
            path = f"{_POLICIES}/{policy['metadata']['name']}/status"
            self._cluster.request("PATCH", path, {"status": status}, content_type=_MERGE)


def _kwok(node: Object) -> bool:
    metadata = node["metadata"]
    return (metadata.get("annotations") or {}).get(KWOK_ANNOTATION) == "fake" and not metadata.get("deletionTimestamp")


def _runs(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp")
