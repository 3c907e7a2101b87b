"""DRA drivers of all KWOK nodes: DraNet and NVIDIA's driver publish where a pod of theirs runs.

GKE's managed DRANET is played as DraNet 1.4.0, of which it is made.
"""

import logging

from berth.components.cluster.api import NODES, PODS, Object
from berth.components.cluster.devices import GPU_PODS, NETWORK_PODS
from berth.components.hardware.names import DRANET_DRIVER, MANAGED_DRANET_LABEL, POOL_LABEL
from berth.components.hardware.names import GPU as GPU_DRIVER
from berth.lab.api import DAEMONSETS, SLICES, Api
from berth.lab.devices import dra_devices
from berth.lab.devices.dra_devices import SIMULATED, is_current, resource_slice
from berth.lab.devices.gpu_cluster import is_fake, is_of_daemonset, runs, runs_installer
from berth.lab.devices.gpus import DRIVER, preinstalled
from berth.lab.plugins.gcp.interfaces import interfaces
from berth.lab.plugins.gcp.store import Store

_AGAIN_SECONDS = 0.5

_log = logging.getLogger("berth.lab.devices.dra")


class DraNodes:
    """DRA drivers of one lab; the simulated cloud's records have the machines' NICs."""

    def __init__(self, api: Api, store: Store) -> None:
        self._api = api
        self._store = store

    def step(self) -> float | None:
        """Look and act once; return seconds after which to look again even without a change."""
        network = self._nodes(NETWORK_PODS)
        gpu = self._nodes(GPU_PODS)
        pools = {pool.name: pool for pool in self._store.list("nodePools")}
        daemonsets = self._api.list(DAEMONSETS) if gpu else []
        target = []
        for node in filter(is_fake, self._api.list(NODES)):
            name = node["metadata"]["name"]
            labels = node["metadata"].get("labels") or {}
            pool = pools.get(labels.get(POOL_LABEL, ""))
            # GKE's managed DraNet has no DaemonSet in the lab.
            if pool is not None and (name in network or labels.get(MANAGED_DRANET_LABEL) == "true"):
                devices = dra_devices.nics(labels, interfaces(self._store, pool))
                # DraNet publishes nothing while it has seen no device.
                target += [resource_slice(node, DRANET_DRIVER, devices)] if devices else []
            installed = (
                DRIVER in labels or preinstalled(labels) or runs_installer(daemonsets, labels)
            )
            if name in gpu and installed:
                target.append(resource_slice(node, GPU_DRIVER, dra_devices.gpus(name, labels)))
        return None if self._apply(target) else _AGAIN_SECONDS

    def _apply(self, target: list[Object]) -> bool:
        """Bring the slices to the target; False where somebody else was faster.

        Slices of real drivers are left alone. One that is still of another node, which had the
        name before, becomes the new node's.
        """
        labels = ",".join(f"{key}={value}" for key, value in SIMULATED.items())
        present = {
            entry["metadata"]["name"]: entry
            for entry in self._api.list(SLICES, labelSelector=labels)
        }
        done = []
        for entry in target:
            name = entry["metadata"]["name"]
            if not is_current(entry, present.pop(name, None)):
                done.append(self._api.apply(f"{SLICES}/{name}", entry))
                _log.info("ResourceSlice %s: %d devices", name, len(entry["spec"]["devices"]))
        done += [self._api.delete(f"{SLICES}/{name}") for name in present]
        return all(done)

    def _nodes(self, selector: str) -> set[str]:
        """Names of nodes where a pod of a driver's DaemonSet runs."""
        pods = self._api.list(PODS, labelSelector=selector)
        return {pod["spec"]["nodeName"] for pod in pods if runs(pod) and is_of_daemonset(pod)}
