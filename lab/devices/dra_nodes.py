"""The DRA drivers of all KWOK nodes: publishes what DraNet and NVIDIA's driver would where a pod of theirs runs.

Answers to (read): sigs.k8s.io/dranet v1.4.0, pkg/driver/driver.go and pkg/inventory/db.go:
    https://github.com/kubernetes-sigs/dranet/blob/v1.4.0/pkg/inventory/db.go
Answers to (read): kubernetes-sigs/dra-driver-nvidia-gpu at 95932046, hack/kubelet-plugin-prestart.sh (what waits for
    a driver, and where it looks):
    https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/blob/95932046683719c43b6a0dd9613c2e5aad5d6703/hack/kubelet-plugin-prestart.sh
Answers to (read): "Prepare GKE infrastructure for DRA workloads" for the driver's folders:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra
Answers to (believed): GKE's managed DRANET publishes of a node what DraNet 1.4.0 would. A ResourceSlice of a node
    with accelerator network profile `auto` would settle it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from berth.components.cluster.api import ClusterApi, ConflictError, NotFoundError
from berth.components.hardware.names import POOL_LABEL
from berth.lab.devices import gpu_devices, network_devices, operands
from berth.lab.devices.autoscaler import selected
from berth.lab.devices.cluster_events import warn
from berth.lab.devices.gke_device_plugin import DRIVER as GKE_DRIVER
from berth.lab.devices.resource_slices import PATH, changes, resource_slice
from berth.lab.plugins.gcp.interfaces import interfaces

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from berth.lab.plugins.gcp.store import Record, Store

Object = dict[str, Any]

_KWOK_ANNOTATION = "kwok.x-k8s.io/node"
_INSTALLER = "nvidia-driver-installer"
# Google's installer puts the driver there on Container-Optimized OS, and elsewhere on Ubuntu ("Set up dynamic resource
# allocation in GKE").
_DRIVER_FOLDERS = {"cos": "/home/kubernetes/bin/nvidia", "ubuntu": "/opt/nvidia"}
_OS = "cloud.google.com/gke-os-distribution"
_AGAIN_SECONDS = 0.5

_log = logging.getLogger("berth.lab.devices.dra")


class DraNodes:
    """Plays the DRA drivers of one lab.

    Args:
        kubeconfig: the administrator's kubeconfig of the lab.
        store: the simulated cloud's records: which network cards a pool's machines have.
    """

    def __init__(self, kubeconfig: Path, store: Store) -> None:
        self._kubeconfig = kubeconfig
        self._store = store
        self._connected: ClusterApi | None = None
        self._said: dict[str, str] = {}

    @property
    def _cluster(self) -> ClusterApi:
        if self._connected is None:
            self._connected = ClusterApi(self._kubeconfig.read_text())
        return self._connected

    def step(self) -> float | None:
        """Look once, and act.

        Returns:
            Seconds after which to look again even if nothing changes, or None.

        Raises:
            ClusterError: the API server does not answer, or refuses.
        """
        nodes = [node for node in self._listed("/api/v1/nodes") if _kwok(node)]
        network_pods = self._pods(network_devices.DAEMONSET)
        gpu_pods = self._pods(gpu_devices.DAEMONSET)
        pools = {pool.name: pool for pool in self._store.list("nodePools")}
        installers = self._installers() if gpu_pods else []
        wanted = []
        for node in nodes:
            name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
            if name in network_pods or network_devices.managed(labels):
                found = self._network_devices(node, pools.get(labels.get(POOL_LABEL, "")))
                # DraNet publishes nothing while it has seen no device.
                wanted += [resource_slice(node, network_devices.DRIVER, found)] if found else []
            if name in gpu_pods and self._driver_is_there(gpu_pods[name], labels, installers):
                wanted.append(resource_slice(node, gpu_devices.DRIVER, gpu_devices.devices(name, labels)))
        settled = self._apply(wanted)
        uids = {pod["metadata"]["uid"] for pod in gpu_pods.values()}
        self._said = {uid: said for uid, said in self._said.items() if uid in uids}
        return None if settled else _AGAIN_SECONDS

    def _network_devices(self, node: Object, pool: Record | None) -> list[Object]:
        if pool is None:
            return []
        metadata = node["metadata"]
        return network_devices.devices(metadata["name"], metadata.get("labels") or {}, interfaces(self._store, pool))

    def _driver_is_there(self, pod: Object, labels: Mapping[str, str], installers: list[Object]) -> bool:
        """Whether the plugin gets beyond its init container, which waits for NVIDIA's driver; an event says why not."""
        problem = driver_problem(pod, labels, installed=_installed(labels, installers))
        uid = pod["metadata"]["uid"]
        if problem and self._said.get(uid) != problem:
            _log.warning("pod %s: %s", pod["metadata"]["name"], problem)
            warn(self._cluster, pod, "Pod", "dra-driver-nvidia-gpu (simulated)", "DriverNotFound", problem)
        self._said[uid] = problem
        return not problem

    def _apply(self, wanted: list[Object]) -> bool:
        """Bring the slices to what is wanted; False where somebody else was faster."""
        new, changed, gone = changes(wanted, self._listed(PATH))
        try:
            for name in gone:
                self._cluster.request("DELETE", f"{PATH}/{name}")
                _log.info("ResourceSlice %s is gone", name)
            for each in new:
                self._cluster.request("POST", PATH, each)
                _log.info("ResourceSlice %s: %d devices", each["metadata"]["name"], len(each["spec"]["devices"]))
            for each in changed:
                self._cluster.request("PUT", f"{PATH}/{each['metadata']['name']}", each)
                _log.info(
                    "ResourceSlice %s: generation %d", each["metadata"]["name"], each["spec"]["pool"]["generation"]
                )
        except (NotFoundError, ConflictError):
            return False
        return True

    def _pods(self, label: tuple[str, str]) -> dict[str, Object]:
        """The pods of a driver's DaemonSet that run, by node."""
        key, value = label
        found = self._listed("/api/v1/pods", labelSelector=f"{key}={value}")
        return {pod["spec"]["nodeName"]: pod for pod in found if _of_daemonset(pod) and _runs(pod)}

    def _installers(self) -> list[Object]:
        found = self._listed("/apis/apps/v1/daemonsets")
        return [each for each in found if each["metadata"]["name"].startswith(_INSTALLER)]

    def _listed(self, path: str, **query: str) -> list[Object]:
        return self._cluster.list(path, **query)[0]


def driver_problem(pod: Object, labels: Mapping[str, str], *, installed: bool) -> str:
    """Why a pod of the driver's DaemonSet finds no NVIDIA driver on its node; empty if it does.

    Args:
        pod: the pod.
        labels: the node's.
        installed: a driver is on the node.
    """
    if not installed:
        return "no NVIDIA driver on the node: GKE installs none there, and Google's nvidia-driver-installer does not run on it"
    if labels.get(operands.PREINSTALLED) == "preinstalled":
        return ""
    folder = _DRIVER_FOLDERS.get(labels.get(_OS, ""), "")
    roots = {
        str(variable.get("value") or "").rstrip("/")
        for container in [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
        for variable in container.get("env") or []
        if variable["name"] == gpu_devices.ROOT_VARIABLE
    }
    wrong = sorted(roots - {folder})
    return f"no NVIDIA driver in {wrong[0] or '/'}: Google's is in {folder} (nvidiaDriverRoot)" if wrong else ""


def _installed(labels: Mapping[str, str], installers: list[Object]) -> bool:
    if GKE_DRIVER in labels or labels.get(operands.PREINSTALLED) == "preinstalled":
        return True
    return any(selected(each["spec"]["template"]["spec"], labels) for each in installers)


def _kwok(node: Object) -> bool:
    metadata = node["metadata"]
    return (metadata.get("annotations") or {}).get(_KWOK_ANNOTATION) == "fake" and not metadata.get("deletionTimestamp")


def _of_daemonset(pod: Object) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or [])


def _runs(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp")
