"""DRA drivers of all KWOK nodes: DraNet and NVIDIA's driver publish where a pod of theirs runs.

GKE's managed DRANET is played as DraNet 1.4.0, of which it is made.

Answers to (read): sigs.k8s.io/dranet v1.4.0, pkg/driver/driver.go and pkg/inventory/db.go:
    https://github.com/kubernetes-sigs/dranet/blob/v1.4.0/pkg/inventory/db.go
Answers to (read): kubernetes-sigs/dra-driver-nvidia-gpu at 95932046,
    hack/kubelet-plugin-prestart.sh (what waits for a driver, and where it looks):
    https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/blob/95932046683719c43b6a0dd9613c2e5aad5d6703/hack/kubelet-plugin-prestart.sh
Answers to (read): "Prepare GKE infrastructure for DRA workloads" for the driver's folders:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra
"""

from __future__ import annotations

import logging

from berth.components.cluster.api import NODES, PODS, Object
from berth.components.cluster.devices import GPU_PODS, NETWORK_PODS
from berth.components.hardware.names import DRANET_DRIVER, MANAGED_DRANET_LABEL, POOL_LABEL
from berth.components.hardware.names import GPU as GPU_DRIVER
from berth.lab.devices import dra_devices
from berth.lab.devices.api import DAEMONSETS, SLICES, Api
from berth.lab.devices.dra_devices import changes, resource_slice
from berth.lab.devices.gpu_cluster import is_fake, runs, runs_installer
from berth.lab.devices.gpus import DRIVER, SYSTEM, Labels, preinstalled
from berth.lab.plugins.gcp.interfaces import interfaces
from berth.lab.plugins.gcp.store import Store

# Folders of Google's driver, by operating system ("Set up dynamic resource allocation in GKE").
_DRIVER_FOLDERS = {"cos": "/home/kubernetes/bin/nvidia", "ubuntu": "/opt/nvidia"}
_ROOT_VARIABLE = "NVIDIA_DRIVER_ROOT"
_AGAIN_SECONDS = 0.5

_log = logging.getLogger("berth.lab.devices.dra")


class DraNodes:
    """DRA drivers of one lab; the simulated cloud's records have the machines' NICs."""

    def __init__(self, api: Api, store: Store) -> None:
        self._api = api
        self._store = store
        self._problems: dict[str, str] = {}

    def step(self) -> float | None:
        """Look and act once; return seconds after which to look again even without a change."""
        network_pods, gpu_pods = self._pods(NETWORK_PODS), self._pods(GPU_PODS)
        pools = {pool.name: pool for pool in self._store.list("nodePools")}
        daemonsets = self._api.list(DAEMONSETS) if gpu_pods else []
        target = []
        for node in filter(is_fake, self._api.list(NODES)):
            name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
            pool = pools.get(labels.get(POOL_LABEL, ""))
            # GKE's managed DraNet has no DaemonSet in the lab.
            if pool is not None and (name in network_pods or labels.get(MANAGED_DRANET_LABEL) == "true"):
                devices = dra_devices.nics(name, labels, interfaces(self._store, pool))
                # DraNet publishes nothing while it has seen no device.
                target += [resource_slice(node, DRANET_DRIVER, devices)] if devices else []
            if name in gpu_pods and self._has_driver(gpu_pods[name], labels, daemonsets):
                target.append(resource_slice(node, GPU_DRIVER, dra_devices.gpus(name, labels)))
        uids = {pod["metadata"]["uid"] for pod in gpu_pods.values()}
        self._problems = {uid: problem for uid, problem in self._problems.items() if uid in uids}
        return None if self._apply(target) else _AGAIN_SECONDS

    def _has_driver(self, pod: Object, labels: Labels, daemonsets: list[Object]) -> bool:
        """Whether the plugin's init container finds NVIDIA's driver; an event says why not."""
        problem = driver_problem(pod, labels, installed=DRIVER in labels or runs_installer(daemonsets, labels))
        uid = pod["metadata"]["uid"]
        if problem and self._problems.get(uid) != problem:
            _log.warning("pod %s: %s", pod["metadata"]["name"], problem)
            self._api.event(pod, "dra-driver-nvidia-gpu (simulated)", "Warning", "DriverNotFound", problem)
        self._problems[uid] = problem
        return not problem

    def _apply(self, target: list[Object]) -> bool:
        """Bring the slices to the target; False where somebody else was faster."""
        new, changed, gone = changes(target, self._api.list(SLICES))
        done = [self._api.delete(f"{SLICES}/{name}") for name in gone]
        done += [self._api.create(SLICES, entry) for entry in new]
        done += [self._api.replace(f"{SLICES}/{entry['metadata']['name']}", entry) for entry in changed]
        for entry in (*new, *changed):
            generation, count = entry["spec"]["pool"]["generation"], len(entry["spec"]["devices"])
            _log.info("ResourceSlice %s: generation %d, %d devices", entry["metadata"]["name"], generation, count)
        return all(done)

    def _pods(self, selector: str) -> dict[str, Object]:
        """Running pods of a driver's DaemonSet, by node."""
        pods = [pod for pod in self._api.list(PODS, labelSelector=selector) if runs(pod)]
        owners = ((pod, pod["metadata"].get("ownerReferences") or []) for pod in pods)
        return {pod["spec"]["nodeName"]: pod for pod, refs in owners if any(ref["kind"] == "DaemonSet" for ref in refs)}


def driver_problem(pod: Object, labels: Labels, *, installed: bool) -> str:
    """Return why a pod of the DRA driver finds no NVIDIA driver on its node; empty if it does."""
    if preinstalled(labels):
        return ""
    if not installed:
        return (
            "no NVIDIA driver on the node: GKE installs none, and Google's nvidia-driver-installer does not run on it"
        )
    folder = _DRIVER_FOLDERS.get(labels.get(SYSTEM, ""), "")
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    variables = [variable for container in containers for variable in container.get("env") or []]
    roots = {
        str(variable.get("value") or "").rstrip("/") for variable in variables if variable["name"] == _ROOT_VARIABLE
    }
    wrong = sorted(roots - {folder})
    return f"no NVIDIA driver in {wrong[0] or '/'}: Google's is in {folder} (nvidiaDriverRoot)" if wrong else ""
