"""Pods that wait: for a Secret that they name, or for definitions that a Job would apply.

The GPU Operator's chart upgrades its definitions by a Job. No container runs in the lab, so the
lab's chart puts the definitions into a ConfigMap of the Job's name, and a scheduling gate on its
pod. The gate goes once the definitions are applied, and Helm sees the Job complete after that.
"""

import logging
from collections.abc import Iterator
from typing import Any

import yaml

from berth.components.cluster.api import JSON_PATCH, SECRETS, Object, in_namespace
from berth.lab.api import DEFINITIONS, Api, path_of
from berth.lab.devices import kubelet
from berth.lab.devices.kubelet import Hold

_GATE = "lab.berth/upgrade-crd"

_log = logging.getLogger("berth.lab.devices")


class WaitingPods:
    """Pods of simulated nodes, and what they wait for."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._waiting: dict[str, Object] = {}
        self._started: set[str] = set()

    def see(self, pod: Object, *, gone: bool) -> None:
        """Hold a pod back, or take note that it has started."""
        uid = pod["metadata"]["uid"]
        if gone:
            self._started.discard(uid)
        elif uid not in self._started and (
            _is_gated(pod) or (pod["status"].get("podIP") and any(_references(pod)))
        ):
            self._waiting[uid] = pod
            self._advance(pod)

    def step(self) -> None:
        """Look again at the pods that are held back."""
        for uid, seen in list(self._waiting.items()):
            pod = self._api.get(path_of(seen))
            if pod is None or pod["metadata"]["uid"] != uid:
                self._waiting.pop(uid, None)
            else:
                self._advance(pod)

    def _advance(self, pod: Object) -> None:
        """Do what a pod waits for, or show that it waits."""
        if _is_gated(pod):
            if not self._apply_definitions(pod):
                return
        else:
            hold = self._missing_secret(pod)
            kubelet.show(self._api, pod, hold)
            if hold is not None:
                return
        self._started.add(pod["metadata"]["uid"])
        self._waiting.pop(pod["metadata"]["uid"], None)

    def _missing_secret(self, pod: Object) -> Hold | None:
        namespace = pod["metadata"]["namespace"]
        for container, at in _references(pod):
            secret = self._api.get(f"{in_namespace(namespace, SECRETS)}/{at['name']}")
            if secret is None or at["key"] not in (secret.get("data") or {}):
                message = f"couldn't find key {at['key']} in Secret {namespace}/{at['name']}"
                if secret is None:
                    message = f'secret "{at["name"]}" not found'
                return Hold(message, "Failed", container, "CreateContainerConfigError")
        return None

    def _apply_definitions(self, pod: Object) -> bool:
        """Apply the definitions that a pod waits for, and remove its gate; False to try again."""
        (job,) = [
            owner["name"] for owner in pod["metadata"]["ownerReferences"] if owner["kind"] == "Job"
        ]
        folder = in_namespace(pod["metadata"]["namespace"], "/api/v1/configmaps")
        for text in (self._api.get(f"{folder}/{job}") or {"data": {}})["data"].values():
            for definition in filter(None, yaml.safe_load_all(text)):
                if not self._api.apply(
                    f"{DEFINITIONS}/{definition['metadata']['name']}", definition
                ):
                    return False
        _log.info("job %s: applied the definitions", job)
        return self._api.patch(
            path_of(pod), [{"op": "remove", "path": "/spec/schedulingGates"}], JSON_PATCH
        )


def _is_gated(pod: Object) -> bool:
    """Whether a pod waits for definitions to be applied."""
    gates = pod["spec"].get("schedulingGates") or []
    return any(gate["name"] == _GATE for gate in gates) and not pod["metadata"].get(
        "deletionTimestamp"
    )


def _references(pod: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each Secret that a variable must have, with the name of the container."""
    for container in pod["spec"].get("containers") or []:
        for variable in container.get("env") or []:
            at = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if at and not at.get("optional"):
                yield container["name"], at
