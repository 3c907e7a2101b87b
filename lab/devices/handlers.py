"""The controller's eyes and hands: kopf handlers that apply the pure rules to what the API server shows."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any

import kopf

from lab.devices import gke_device_plugin, kuberay
from lab.devices.runner import OperatorRunner, end_orphans
from lab.devices.scaler import Scaler, autoscaled
from lab.plugins.gcp.fleet import Fleet
from lab.plugins.gcp.store import Store
from lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from lab.home import Home

KWOK_ANNOTATION = "kwok.x-k8s.io/node"

_SCALE_SECONDS = 2.0

_log = logging.getLogger("lab.devices")


class Controller:
    """The state behind the handlers: the operators that run, and what has been said.

    Args:
        home: the lab.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self.version = kuberay.built_version()
        self._runners: dict[str, OperatorRunner] = {}
        self._refused: set[tuple[str, Any]] = set()
        self._said: dict[str, dict[str, int]] = {}

    def node(self, body: kopf.Body, patch: kopf.Patch) -> None:
        """Advertise on a KWOK node what its device plugins would."""
        if body.metadata.annotations.get(KWOK_ANNOTATION) != "fake" or body.metadata.get("deletionTimestamp"):
            return
        wanted = gke_device_plugin.devices(body.metadata.labels)
        status: dict[str, Any] = dict(body.status)
        change = gke_device_plugin.status_change(wanted, status.get("capacity") or {}, status.get("allocatable") or {})
        patch.status.update(change)
        # The same change is asked for again until the server shows it; it is said once.
        name = body.metadata.name
        if change and self._said.get(name) != wanted:
            self._said[name] = wanted
            shown = ", ".join(f"{resource}={count}" for resource, count in wanted.items()) or "none"
            _log.info("node %s: devices %s", name, shown)

    def forget(self, node: str) -> None:
        """A node is gone."""
        self._said.pop(node, None)

    async def deployment(self, event: str | None, body: kopf.Body) -> None:
        """Run, change or stop the operator of a Deployment."""
        key = f"{body.metadata.namespace}/{body.metadata.name}"
        if event == "DELETED" or kuberay.operator_container(body) is None:
            runner = self._runners.pop(key, None)
            if runner is not None:
                await runner.close()
            return
        try:
            launch = kuberay.wanted(body, self.version)
        except kuberay.WrongVersionError as error:
            launch = None
            self._refuse(body, key, str(error))
        if key not in self._runners:
            if launch is None:
                return
            self._runners[key] = OperatorRunner(self.home, key)
        self._runners[key].want(launch)

    def _refuse(self, body: kopf.Body, key: str, message: str) -> None:
        refused = (key, body.metadata.get("generation"))
        if refused not in self._refused:
            self._refused.add(refused)
            _log.warning("%s: %s", key, message)
            kopf.warn(body, reason="OperatorVersionNotBuilt", message=message)

    async def scale(self) -> None:
        """Be the cluster autoscaler, while a pool has one."""
        store = Store(self.home.cloud)
        scaler = Scaler(store, Fleet(self.home.kubeconfig))
        while True:
            await asyncio.sleep(_SCALE_SECONDS)
            try:
                if autoscaled(store):
                    await asyncio.to_thread(scaler.step)
            except ProviderError as error:
                _log.warning("autoscaler: %s", error)
            except Exception:  # noqa: BLE001 (what it cannot deal with must not end the other work of this process)
                _log.exception("autoscaler")

    async def close(self) -> None:
        """Stop every operator."""
        for runner in self._runners.values():
            await runner.close()
        self._runners.clear()


def registry(controller: Controller) -> kopf.OperatorRegistry:
    """The handlers of one controller."""
    handlers = kopf.OperatorRegistry()
    tasks: list[asyncio.Task[None]] = []

    async def configure(settings: kopf.OperatorSettings, **_: object) -> None:
        # Only built-in kinds are watched, and nothing is written into them but what the rules say.
        settings.scanning.disabled = True
        settings.batching.batch_window = 0.02
        settings.networking.error_backoffs = [0.5, 1, 2, 4, 8]
        ended = end_orphans(controller.home)
        if ended:
            _log.warning("%d KubeRay operator of a controller that is gone: ended", ended)
        tasks.append(asyncio.create_task(controller.scale()))

    def login(**keywords: Any) -> kopf.ConnectionInfo | None:
        # The lab's own cluster, whatever the shell that started us looks at.
        os.environ["KUBECONFIG"] = str(controller.home.kubeconfig)
        return kopf.login_with_kubeconfig(**keywords)

    def node(type: str | None, body: kopf.Body, patch: kopf.Patch, **_: object) -> None:  # noqa: A002 (kopf's name)
        if type == "DELETED":
            controller.forget(body.metadata.name)
        else:
            controller.node(body, patch)

    async def deployment(type: str | None, body: kopf.Body, **_: object) -> None:  # noqa: A002 (kopf's name)
        await controller.deployment(type, body)

    async def close(**_: object) -> None:
        for task in tasks:
            task.cancel()
        await controller.close()

    kopf.on.startup(registry=handlers)(configure)
    kopf.on.login(registry=handlers)(login)
    kopf.on.event("", "v1", "nodes", registry=handlers)(node)
    kopf.on.event("apps", "v1", "deployments", registry=handlers)(deployment)
    kopf.on.cleanup(registry=handlers)(close)
    return handlers
