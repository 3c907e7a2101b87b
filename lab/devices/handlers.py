"""Controller of the lab: kopf handlers that see changes, and loops that look at intervals.

Simulates nothing: it connects the modules that do to the API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import kopf

from berth.components.cluster.api import ClusterApi, Object
from berth.components.core.errors import BerthError
from berth.lab.devices import definitions_hook, disks, policies
from berth.lab.devices.api import Api
from berth.lab.devices.dra_nodes import DraNodes
from berth.lab.devices.egress import Egress
from berth.lab.devices.gpu_cluster import Observed
from berth.lab.devices.gpu_nodes import GpuNodes
from berth.lab.devices.kuberay import Operators
from berth.lab.devices.scaler import Scaler, autoscaled, short
from berth.lab.devices.secret_values import SecretValues
from berth.lab.home import Home
from berth.lab.plugins.gcp import real_node
from berth.lab.plugins.gcp.fleet import Fleet
from berth.lab.plugins.gcp.store import Store

_SCALE_SECONDS = 2.0
_ADD_ON_SECONDS = 0.5
_SECRET_SECONDS = 0.5
# Changes come in groups: one look serves them all.
_GATHER_SECONDS = 0.1
_RETRY_SECONDS = 2.0

# Kinds that kopf watches, by group and plural.
_KINDS = (
    *(("", "nodes"), ("", "pods"), ("apps", "daemonsets"), ("apps", "deployments")),
    *(("resource.k8s.io", "resourceslices"), ("", "persistentvolumeclaims"), ("", "persistentvolumes")),
)

_T = TypeVar("_T")

_log = logging.getLogger("berth.lab.devices")


class Controller:
    """Handlers of one lab, and the state behind them."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._cluster = ClusterApi(home.kubeconfig.read_text())
        self._api = Api(self._cluster)
        self._store = Store(home.cloud)
        self._operators = Operators(home, self._store)
        self._observed = Observed()
        self._egress = Egress()
        self._gpus = GpuNodes(self._api)
        self._dra = DraNodes(self._api, self._store)
        self._secrets = SecretValues(self._api)
        self._scaler = Scaler(self._store, Fleet(home.kubeconfig), self._api)
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def login(self, **keywords: Any) -> kopf.ConnectionInfo | None:
        """Connect to the lab's own cluster, whatever the environment names."""
        os.environ["KUBECONFIG"] = str(self._home.kubeconfig)
        return kopf.login_with_kubeconfig(**keywords)

    async def start(self, settings: kopf.OperatorSettings, **_: object) -> None:
        """Start the loops."""
        settings.batching.batch_window = 0.02
        settings.networking.error_backoffs = [0.5, 1, 2, 4, 8]
        await self._egress.start(self._home.egress)
        loops = (
            self._serve_devices(),
            _repeat(_SCALE_SECONDS, "autoscaler", self._scale),
            _repeat(_ADD_ON_SECONDS, "add-ons", self._operators.look),
            _repeat(_SECRET_SECONDS, "Secrets", partial(asyncio.to_thread, self._secrets.step)),
        )
        self._tasks = [asyncio.create_task(loop) for loop in loops]
        loop = asyncio.get_running_loop()
        # The thread ends with the process: a watch cannot be broken off.
        threading.Thread(target=self._watch_policies, args=[loop], daemon=True).start()

    async def close(self, **_: object) -> None:
        """End the loops and the programs."""
        for task in self._tasks:
            task.cancel()
        await self._egress.close()
        await self._operators.close()

    def _watch_policies(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            for policy in policies.seen(self._cluster):
                loop.call_soon_threadsafe(self._see_policy, policy)

    def _see_policy(self, policy: Object | None) -> None:
        if policy is None or self._observed.changed("ClusterPolicy", policy, gone=False):
            self._changed.set()

    async def see(self, type: str | None, body: kopf.Body, **_: object) -> None:  # noqa: A002 (kopf's name)
        """Take note of an object that may bear on devices, and act for a pod or a Deployment."""
        gone, uid = type == "DELETED", body.metadata.uid
        if self._observed.changed(body["kind"], body, gone=gone):
            self._changed.set()
        if body["kind"] == "Node":
            addresses = {entry["type"]: entry["address"] for entry in body.status.get("addresses") or []}
            self._egress.reach(uid, "" if gone else addresses.get("InternalIP", ""))
        elif body["kind"] == "Deployment":
            await self._operators.deployment(type, body)
        elif body["kind"] in ("PersistentVolumeClaim", "PersistentVolume"):
            if not gone:
                name = f"{body['kind']} {body.metadata.name}"
                real_one = disks.RealNode(real_node.name(self._home.kubeconfig), real_node.disks(self._home.kubeconfig))
                await _attempt(name, partial(asyncio.to_thread, disks.play, self._api, dict(body), real_one), None)
        elif body["kind"] == "Pod":
            real = body.spec.get("nodeName") == real_node.name(self._home.kubeconfig)
            self._egress.reach(uid, body.status.get("podIP", "") if real and not gone else "")
            name = f"pod {body.metadata.namespace}/{body.metadata.name}"
            if not gone and definitions_hook.is_waiting(body):
                await _insist(name, partial(asyncio.to_thread, definitions_hook.play, self._api, dict(body)))
            if not (gone or real) and self._secrets.concerns(body):
                await _attempt(name, partial(asyncio.to_thread, self._secrets.admit, dict(body)), None)
            if not gone and self._gpus.refusal(body):
                await _attempt(name, partial(asyncio.to_thread, self._gpus.admit, dict(body)), None)

    async def _serve_devices(self) -> None:
        """Be the device plugins and DRA drivers: look at the start and after each change."""
        again: float | None = 0.0
        retry: float | None = _RETRY_SECONDS
        looks = (("GPUs", self._gpus.step), ("claims' devices", self._dra.step))
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), again)
            await asyncio.sleep(_GATHER_SECONDS)
            self._changed.clear()
            waits = [await _attempt(name, partial(asyncio.to_thread, look), retry) for name, look in looks]
            again = min((seconds for seconds in waits if seconds is not None), default=None)

    async def _scale(self) -> None:
        """Be the cluster autoscaler, and the instance groups that wait for machines."""
        if autoscaled(self._store) or short(self._store):
            await asyncio.to_thread(self._scaler.step)


async def _repeat(seconds: float, name: str, step: Callable[[], Awaitable[None]]) -> None:
    """Take a step again and again."""
    while True:
        await _attempt(name, step, None)
        await asyncio.sleep(seconds)


async def _insist(name: str, step: Callable[[], Awaitable[bool]]) -> None:
    """Take a step until it says that nothing is left to do: nobody else would take it."""
    while True:
        if await _attempt(name, step, otherwise=False):
            return
        await asyncio.sleep(_RETRY_SECONDS)


async def _attempt(name: str, step: Callable[[], Awaitable[_T]], otherwise: _T) -> _T:
    """Return the result of a step, or another value after an error: other work goes on."""
    try:
        return await step()
    except BerthError as error:
        _log.warning("%s: %s", name, error)
    except Exception:  # noqa: BLE001 (see above)
        _log.exception(name)
    return otherwise


def registry(controller: Controller) -> kopf.OperatorRegistry:
    """Return the handlers of one controller."""
    handlers = kopf.OperatorRegistry()
    kopf.on.startup(registry=handlers)(controller.start)
    kopf.on.login(registry=handlers)(controller.login)
    kopf.on.cleanup(registry=handlers)(controller.close)
    for group, plural in _KINDS:
        kopf.on.event(group, "v1", plural, registry=handlers, id=f"see-{plural}")(controller.see)
    return handlers
