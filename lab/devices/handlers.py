"""The controller's eyes and hands: kopf handlers that apply the pure rules to what the API server shows.

Simulates nothing: it connects the modules that do to the API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import TYPE_CHECKING, Any

import kopf

from berth.components.core.errors import BerthError
from berth.lab.devices import definitions_hook
from berth.lab.devices.dra_nodes import DraNodes
from berth.lab.devices.egress import Egress, RayHeads
from berth.lab.devices.gpu_nodes import GpuNodes
from berth.lab.devices.observed import Observed
from berth.lab.devices.operators import Operators
from berth.lab.devices.ray_autoscaler import RayAutoscaler
from berth.lab.devices.ray_pods import ray_node
from berth.lab.devices.runner import end_orphans
from berth.lab.devices.scaler import Scaler, autoscaled, short
from berth.lab.plugins.gcp import real_node
from berth.lab.plugins.gcp.fleet import Fleet
from berth.lab.plugins.gcp.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from berth.lab.home import Home

_SCALE_SECONDS = 2.0
_ADD_ON_SECONDS = 0.5
# Changes come in groups: one look serves them all.
_GATHER_SECONDS = 0.1
_RETRY_SECONDS = 2.0

_log = logging.getLogger("berth.lab.devices")


class Controller:
    """The state behind the handlers: the operators that run, and what has been said.

    Args:
        home: the lab.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self._store = Store(home.cloud)
        self.operators = Operators(home, self._store)
        self._observed = Observed()
        self._heads = RayHeads()
        self.egress = Egress(self._heads)
        self._ray_autoscaler = RayAutoscaler(home.kubeconfig)
        self._gpus = GpuNodes(home.kubeconfig, self._observed.knows)
        self._players = (
            ("GPUs", self._gpus.step),
            ("claims' devices", DraNodes(home.kubeconfig, self._store).step),
        )
        self._changed = asyncio.Event()

    def see(self, kind: str, event: str | None, body: kopf.Body) -> None:
        """Something is there, has changed or is gone that may bear on devices."""
        if kind == "Node":
            addresses = {each["type"]: each["address"] for each in body.status.get("addresses") or []}
            self._heads.reach(body.metadata.uid, "" if event == "DELETED" else addresses.get("InternalIP", ""))
        if self._observed.changed(kind, body, gone=event == "DELETED"):
            self._changed.set()

    async def pod(self, event: str | None, body: kopf.Body) -> None:
        """A pod is there, has changed or is gone."""
        self.see("Pod", event, body)
        there, real = event != "DELETED", body.spec.get("nodeName") == real_node.name(self.home.kubeconfig)
        self._heads.see(body.metadata.uid, ray_node(body) if there and not real else None)
        self._heads.reach(body.metadata.uid, body.status.get("podIP", "") if there and real else "")
        if event == "DELETED":
            self._gpus.forget_pod(body.metadata.uid)
            return
        try:
            if definitions_hook.is_waiting(body):
                await asyncio.to_thread(definitions_hook.play, self.home, dict(body))
            if self._gpus.may_refuse(body):
                await asyncio.to_thread(self._gpus.admit, dict(body))
        except (BerthError, RuntimeError) as error:
            _log.warning("pod %s/%s: %s", body.metadata.namespace, body.metadata.name, error)

    async def serve(self) -> None:
        """Be the device plugins and DRA drivers: look at the cluster once, and whenever something has changed."""
        again: float | None = 0.0
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), again)
            await asyncio.sleep(_GATHER_SECONDS)
            self._changed.clear()
            soon = [await self._attempt(what, step) for what, step in self._players]
            again = min((seconds for seconds in soon if seconds is not None), default=None)

    async def _attempt(self, what: str, step: Callable[[], float | None]) -> float | None:
        """Seconds after which to look again even if nothing changes, or None."""
        try:
            return await asyncio.to_thread(step)
        except BerthError as error:
            _log.warning("%s: %s", what, error)
        except Exception:  # noqa: BLE001 (as in `scale`)
            _log.exception(what)
        return _RETRY_SECONDS

    async def scale(self) -> None:
        """Be the cluster autoscaler while a pool has one, and the instance groups that wait for machines."""
        scaler = Scaler(self._store, Fleet(self.home.kubeconfig))
        while True:
            await asyncio.sleep(_SCALE_SECONDS)
            try:
                if autoscaled(self._store) or short(self._store):
                    await asyncio.to_thread(scaler.step)
            except BerthError as error:
                _log.warning("autoscaler: %s", error)
            except Exception:  # noqa: BLE001 (what it cannot deal with must not end the other work of this process)
                _log.exception("autoscaler")

    async def scale_ray(self) -> None:
        """Be Ray's autoscaler of simulated clusters in which Ray Serve runs."""
        while True:
            await asyncio.sleep(_SCALE_SECONDS)
            for cluster, nodes, load in self._heads.loads():
                try:
                    await asyncio.to_thread(self._ray_autoscaler.step, cluster, nodes, load)
                except BerthError as error:
                    _log.warning("RayCluster %s/%s: %s", *cluster, error)
                except Exception:  # noqa: BLE001 (as in `scale`)
                    _log.exception("RayCluster %s/%s", *cluster)

    async def watch_add_ons(self) -> None:
        """Run what the cluster has by an add-on of GKE."""
        while True:
            try:
                await self.operators.look()
            except BerthError as error:
                _log.warning("add-ons: %s", error)
            except Exception:  # noqa: BLE001 (as in `scale`)
                _log.exception("add-ons")
            await asyncio.sleep(_ADD_ON_SECONDS)


def registry(controller: Controller) -> kopf.OperatorRegistry:
    """The handlers of one controller."""
    handlers = kopf.OperatorRegistry()
    tasks: list[asyncio.Task[None]] = []

    async def configure(settings: kopf.OperatorSettings, **_: object) -> None:
        # ClusterPolicies are watched once a chart has brought their kind.
        settings.batching.batch_window = 0.02
        settings.networking.error_backoffs = [0.5, 1, 2, 4, 8]
        ended = end_orphans(controller.home)
        if ended:
            _log.warning("%d KubeRay operator of a controller that is gone: ended", ended)
        await controller.egress.start(controller.home.egress)
        tasks.append(asyncio.create_task(controller.scale()))
        tasks.append(asyncio.create_task(controller.scale_ray()))
        tasks.append(asyncio.create_task(controller.serve()))
        tasks.append(asyncio.create_task(controller.watch_add_ons()))

    def login(**keywords: Any) -> kopf.ConnectionInfo | None:
        # The lab's own cluster, whatever the shell that started us looks at.
        os.environ["KUBECONFIG"] = str(controller.home.kubeconfig)
        return kopf.login_with_kubeconfig(**keywords)

    def watch(group: str, version: str, plural: str, kind: str) -> None:
        def seen(type: str | None, body: kopf.Body, **_: object) -> None:  # noqa: A002 (kopf's name)
            controller.see(kind, type, body)

        kopf.on.event(group, version, plural, registry=handlers, id=f"see-{plural}")(seen)

    async def pod(type: str | None, body: kopf.Body, **_: object) -> None:  # noqa: A002 (kopf's name)
        await controller.pod(type, body)

    async def deployment(type: str | None, body: kopf.Body, **_: object) -> None:  # noqa: A002 (kopf's name)
        controller.see("Deployment", type, body)
        await controller.operators.deployment(type, body)

    async def close(**_: object) -> None:
        for task in tasks:
            task.cancel()
        await controller.egress.close()
        await controller.operators.close()

    kopf.on.startup(registry=handlers)(configure)
    kopf.on.login(registry=handlers)(login)
    watch("", "v1", "nodes", "Node")
    watch("apps", "v1", "daemonsets", "DaemonSet")
    watch("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy")
    watch("resource.k8s.io", "v1", "resourceslices", "ResourceSlice")
    kopf.on.event("", "v1", "pods", registry=handlers)(pod)
    kopf.on.event("apps", "v1", "deployments", registry=handlers)(deployment)
    kopf.on.cleanup(registry=handlers)(close)
    return handlers
