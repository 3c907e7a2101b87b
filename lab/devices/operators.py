"""The KubeRay operators of a lab: who asks for one, and which of them runs.

A Deployment asks for one (the chart), or the cluster does by GKE's add-on. Two would undo each other's work on every
RayCluster: while the add-on is on, that of a Deployment is not run, and an event on the Deployment says so.

Answers to (real): KubeRay's operator v1.6.2, run as a process of this machine.
Answers to (believed): with GKE's add-on on, the operator of a chart would undo its work; the lab runs one of the two.
    Both on one GKE cluster would settle it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import kopf

from berth.lab.devices import kuberay
from berth.lab.devices.runner import OperatorRunner
from berth.lab.plugins.gcp.contents import ray_operator

if TYPE_CHECKING:
    from berth.lab.home import Home
    from berth.lab.plugins.gcp.store import Store

ADD_ON = "GKE's Ray operator add-on"

# GKE runs it beside the control plane, in a version of its own choice: here the one that the lab has built.
_ADD_ON_LAUNCH = kuberay.Launch(("-enable-metrics",), ())

_log = logging.getLogger("berth.lab.devices")


class Operators:
    """Runs what is asked for.

    Args:
        home: the lab.
        store: the simulated cloud's records.
    """

    def __init__(self, home: Home, store: Store) -> None:
        self._home = home
        self._store = store
        self._version = kuberay.built_version()
        self._runners: dict[str, OperatorRunner] = {}
        self._deployments: dict[str, kopf.Body] = {}
        self._refused: set[tuple[str, Any, str]] = set()
        self._add_on = False

    async def deployment(self, event: str | None, body: kopf.Body) -> None:
        """Run, change or stop the operator of a Deployment."""
        key = f"{body.metadata.namespace}/{body.metadata.name}"
        if event == "DELETED" or kuberay.operator_container(body) is None:
            self._deployments.pop(key, None)
            await self._stop(key)
            return
        self._deployments[key] = body
        launch = self._wanted(key, body)
        if key not in self._runners:
            if launch is None:
                return
            self._runners[key] = OperatorRunner(self._home, key)
        self._runners[key].want(launch)

    async def look(self) -> None:
        """Start or stop the add-on's operator, as the cluster says."""
        on = add_on(self._store)
        if on == self._add_on:
            return
        self._add_on = on
        for key, body in list(self._deployments.items()):
            await self._stop(key)
            await self.deployment(None, body)
        if on:
            self._runners[ADD_ON] = OperatorRunner(self._home, ADD_ON)
            self._runners[ADD_ON].want(_ADD_ON_LAUNCH)
        else:
            await self._stop(ADD_ON)

    async def close(self) -> None:
        """Stop every operator."""
        for key in list(self._runners):
            await self._stop(key)

    def _wanted(self, key: str, body: kopf.Body) -> kuberay.Launch | None:
        try:
            launch = kuberay.wanted(body, self._version)
        except kuberay.WrongVersionError as error:
            self._refuse(body, key, "OperatorVersionNotBuilt", str(error))
            return None
        if launch is None or not add_on(self._store):
            return launch
        self._refuse(
            body,
            key,
            "OperatorNotNeeded",
            f"{ADD_ON} is on and runs the operator already; two would undo each other's work, so that this one is not run. "
            "Remove the chart, or turn the add-on off",
        )
        return None

    def _refuse(self, body: kopf.Body, key: str, reason: str, message: str) -> None:
        refused = (key, body.metadata.get("generation"), reason)
        if refused not in self._refused:
            self._refused.add(refused)
            _log.warning("%s: %s", key, message)
            kopf.warn(body, reason=reason, message=message)

    async def _stop(self, key: str) -> None:
        runner = self._runners.pop(key, None)
        if runner is not None:
            await runner.close()


def add_on(store: Store) -> bool:
    """Whether the lab's cluster has GKE's Ray operator add-on on."""
    return any(ray_operator(cluster.inputs) for cluster in store.list("clusters"))
