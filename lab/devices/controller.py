"""Controller of the lab: threads that follow the API server's objects and act on them."""

import json
import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from berth.components.cluster.api import NODES, PODS, ClusterApi, Object
from berth.components.core.errors import BerthError
from berth.lab.api import DAEMONSETS, DEPLOYMENTS, POLICIES, SLICES, Api
from berth.lab.devices import disks
from berth.lab.devices.autoscaler import Autoscaler
from berth.lab.devices.dra_nodes import DraNodes
from berth.lab.devices.egress import Egress
from berth.lab.devices.gpu_cluster import is_of_daemonset
from berth.lab.devices.gpu_nodes import GpuNodes
from berth.lab.devices.kuberay import RayOperator
from berth.lab.devices.waiting_pods import WaitingPods
from berth.lab.home import LabHome
from berth.lab.plugins.gcp import real_node
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.store import Store
from berth.lab.ray.heads import RayHeads
from berth.lab.ray.submitters import Submitters

# Changes come in groups: one look serves them all.
_GATHER_SECONDS = 0.1
_RETRY_SECONDS = 2.0

_OF_DEVICES = (NODES, PODS, DAEMONSETS, DEPLOYMENTS, SLICES, POLICIES)
_OF_VOLUMES = (disks.CLAIMS, disks.VOLUMES)

_log = logging.getLogger("berth.lab.devices")


class Controller:
    """Threads of one lab; they end with the process."""

    def __init__(self, home: LabHome) -> None:
        self._home = home
        self._api = Api(ClusterApi(home.kubeconfig.read_text()))
        store = Store(home.cloud)
        self._operator = RayOperator(home, store, self._api)
        self._waiting = WaitingPods(self._api)
        self._heads = RayHeads(home, self._api)
        self._submitters = Submitters(home, self._api)
        self._devices = (GpuNodes(self._api), DraNodes(self._api, store))
        self._autoscaler = Autoscaler(store, SimulatedFleet(home.kubeconfig), self._api)
        self._changed = threading.Event()

    def start(self) -> None:
        """Start everything."""
        self._heads.prepare()
        work: list[Callable[[], None]] = [
            Egress(self._home.egress, self._is_real, self._heads.dial_pod).serve_forever,
            *(partial(self._follow, path) for path in (*_OF_DEVICES, *_OF_VOLUMES)),
            self._serve_devices,
            partial(_repeat, 2.0, self._autoscaler.step),
            partial(_repeat, 0.5, self._operator.step),
            partial(_repeat, 0.5, self._waiting.step),
            partial(_repeat, 2.0, self._heads.step),
        ]
        for target in work:
            threading.Thread(target=target, daemon=True).start()

    def stop(self) -> None:
        """End the programs that the controller has started."""
        self._heads.stop()
        self._operator.stop()

    def _is_real(self, host: str) -> bool:
        """Whether an address is of the real node, or of a pod on it."""
        name = real_node.name(self._home.kubeconfig)
        node = self._api.get(f"{NODES}/{name}") if name else None
        if node is None:
            return False
        if host in [entry["address"] for entry in node["status"].get("addresses") or []]:
            return True
        return bool(self._api.list(PODS, fieldSelector=f"spec.nodeName={name},status.podIP={host}"))

    def _follow(self, path: str) -> None:
        """Take note of the objects of a collection, and act for some."""
        seen: dict[str, str] = {}
        for item, gone in self._api.follow(path):
            if path == DEPLOYMENTS:
                self._operator.see()
            if item is None:
                seen.clear()
                self._changed.set()
                continue
            uid = item["metadata"]["uid"]
            bears = path in _OF_DEVICES and (path != PODS or is_of_daemonset(item))
            state = _state(item) if bears and not gone else ""
            if state != seen.pop(uid, ""):
                self._changed.set()
            if state:
                seen[uid] = state
            _attempt(partial(self._act, path, item, gone=gone))

    def _act(self, path: str, item: Object, *, gone: bool) -> None:
        """Do what an object of its own asks for."""
        real = real_node.name(self._home.kubeconfig)
        if path == PODS and item["spec"].get("nodeName") != real:
            self._waiting.see(item, gone=gone)
            self._heads.see(item, gone=gone)
            self._submitters.see(item, gone=gone)
        elif path in _OF_VOLUMES and not gone:
            disks.play(
                self._api, path, item, disks.RealNode(real, real_node.disks(self._home.kubeconfig))
            )

    def _serve_devices(self) -> None:
        """Be the device plugins and DRA drivers: look at the start and after each change."""
        again: float | None = 0.0
        while True:
            self._changed.wait(again)
            time.sleep(_GATHER_SECONDS)
            self._changed.clear()
            waits = [_attempt(devices.step, _RETRY_SECONDS) for devices in self._devices]
            again = min((seconds for seconds in waits if seconds is not None), default=None)


def _state(item: Object) -> str:
    """Return the fields of an object that bear on devices: none that heartbeats change."""
    metadata = item["metadata"]
    status = item.get("status") or {}
    fields = [metadata.get(key) for key in ("labels", "generation", "deletionTimestamp")]
    return json.dumps(
        [*fields, {key: value for key, value in status.items() if key != "conditions"}]
    )


def _repeat(seconds: float, step: Callable[[], None]) -> None:
    """Take a step again and again."""
    while True:
        _attempt(step)
        time.sleep(seconds)


def _attempt(step: Callable[[], float | None], otherwise: float | None = None) -> float | None:
    """Return the result of a step, or another value after an error: other work goes on."""
    try:
        return step()
    except BerthError as error:
        _log.warning("%s", error)
    except Exception:  # noqa: BLE001 (see above)
        _log.exception("a step of the lab's controller failed")
    return otherwise
