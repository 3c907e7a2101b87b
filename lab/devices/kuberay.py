"""KubeRay operators of a lab: who asks for one, how its program is started, and which of them runs.

A Deployment asks for one (the chart), or the cluster does by GKE's add-on.

Answers to (real): KubeRay's operator v1.6.2, run as a process of this machine with the arguments
    and variables that its Deployment has.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

import kopf

from berth.lab.devices.runner import Launch, OperatorRunner
from berth.lab.home import Home
from berth.lab.plugins.gcp.contents import ray_operator
from berth.lab.plugins.gcp.store import Store
from berth.lab.toolchain.tools import KUBERAY

ADD_ON = "GKE's Ray operator add-on"

_IMAGE = re.compile(r".*kuberay.*/operator(?::v?(?P<version>[^/@]+))?(?:@.+)?")

# GKE runs a version of its own choice beside the control plane; the lab runs the one it has built.
_ADD_ON_LAUNCH = Launch(("-enable-metrics",), ())
# Flags that name addresses, files and identities of the container: the lab gives its own. A single
# process needs no election of a leader.
_OURS = {
    *("config", "enable-leader-election", "health-probe-bind-address", "kubeconfig", "leader-election-namespace"),
    *("log-file-path", "log-file-encoder", "metrics-addr"),
}
# Variable that opens a port on all addresses, for webhooks that no API server calls here.
_LEFT_OUT_VARIABLES = {"ENABLE_WEBHOOKS"}

_log = logging.getLogger("berth.lab.devices")


def _operator(deployment: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the container of the KubeRay operator and its version; empty without one."""
    for container in deployment["spec"]["template"]["spec"].get("containers") or []:
        if match := _IMAGE.fullmatch(str(container.get("image", ""))):
            return dict(container), match["version"] or ""
    return {}, ""


def launch_of(deployment: Mapping[str, Any]) -> Launch | None:
    """Return how to run the operator of a Deployment; None while it should not, or cannot yet, run.

    A pod has to be available: an unschedulable operator does not work in a real cluster either.
    """
    container, _ = _operator(deployment)
    available = (deployment.get("status") or {}).get("availableReplicas") or 0
    if not container or int(deployment["spec"].get("replicas", 1)) < 1 or int(available) < 1:
        return None
    variables = _environment(container.get("env") or [], deployment["metadata"])
    return Launch(tuple(_arguments(container.get("args") or [])), tuple(sorted(variables.items())))


def _arguments(arguments: list[str]) -> list[str]:
    """Flags as `-name=value`, without those that the lab sets."""
    flags, rest = [], [str(argument) for argument in arguments]
    while rest:
        name, equals, value = rest.pop(0).lstrip("-").partition("=")
        if not equals and rest and not rest[0].startswith("-"):
            equals, value = "=", rest.pop(0)
        if name not in _OURS:
            flags.append(f"-{name}{equals}{value}")
    return flags


def _environment(variables: list[dict[str, Any]], metadata: Mapping[str, Any]) -> dict[str, str]:
    """Plain values, and the two facts about the pod that are known without one."""
    facts = {"metadata.namespace": str(metadata["namespace"]), "metadata.name": str(metadata["name"])}
    found = {}
    for variable in variables:
        field = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
        if field in facts:
            found[str(variable["name"])] = facts[field]
        elif "valueFrom" not in variable:
            found[str(variable["name"])] = str(variable.get("value") or "")
    return {name: value for name, value in found.items() if name not in _LEFT_OUT_VARIABLES}


class Operators:
    """Operators of one lab."""

    def __init__(self, home: Home, store: Store) -> None:
        self._home = home
        self._store = store
        self._runners: dict[str, OperatorRunner] = {}
        self._refused: set[tuple[str, Any]] = set()
        self._add_on = False

    async def deployment(self, event: str | None, body: kopf.Body) -> None:
        """Run, change or stop the operator of a Deployment."""
        key = f"{body.metadata.namespace}/{body.metadata.name}"
        if event == "DELETED" or not _operator(body)[0]:
            await self._run(key, None)
            return
        await self._run(key, self._launch(key, body))

    async def look(self) -> None:
        """Start or stop the add-on's operator, as the cluster says."""
        on = self._add_on_is_on()
        if on == self._add_on:
            return
        self._add_on = on
        await self._run(ADD_ON, _ADD_ON_LAUNCH if on else None)

    async def close(self) -> None:
        """Stop every operator."""
        for key in list(self._runners):
            await self._run(key, None)

    async def _run(self, key: str, launch: Launch | None) -> None:
        """Have an operator run like this, or not at all."""
        runner = self._runners.get(key)
        if (runner.launch if runner else None) == launch:
            return
        if runner is not None:
            del self._runners[key]
            await runner.close()
        if launch is not None:
            self._runners[key] = OperatorRunner(self._home, key, launch)

    def _add_on_is_on(self) -> bool:
        return any(ray_operator(cluster.inputs) for cluster in self._store.list("clusters"))

    def _launch(self, key: str, body: kopf.Body) -> Launch | None:
        container, version = _operator(body)
        if version != KUBERAY.version:
            message = (
                f"the lab runs the KubeRay operator as a local program and has built v{KUBERAY.version} only; "
                f"{container['image']} is not run. Set the image's tag to v{KUBERAY.version}"
            )
            self._refuse(body, key, message)
            return None
        return launch_of(body)

    def _refuse(self, body: kopf.Body, key: str, message: str) -> None:
        refused = (key, body.metadata.get("generation"))
        if refused not in self._refused:
            self._refused.add(refused)
            _log.warning("%s: %s", key, message)
            kopf.warn(body, reason="OperatorVersionNotBuilt", message=message)
