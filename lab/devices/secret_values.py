"""Containers that cannot start, since a Secret that they name is missing.

Answers to (read): https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/kubelet_pods.go
    (makeEnvironmentVariables: the messages) and pkg/kubelet/kuberuntime/kuberuntime_container.go
    (reason CreateContainerConfigError; the kubelet tries again)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.cluster.api import SECRETS, Object, within
from berth.lab.devices import kubelet
from berth.lab.devices.api import STRATEGIC_PATCH, Api, now, path_of
from berth.lab.devices.kubelet import Hold


class SecretValues:
    """Pods of simulated nodes that name Secrets, and whether these are there."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._held: dict[str, Object] = {}

    def concerns(self, pod: Mapping[str, Any]) -> bool:
        """Return whether a pod names a Secret."""
        return any(_references(pod))

    def admit(self, pod: Object) -> None:
        """Hold a pod back while a Secret that it names is missing."""
        secrets = {item["metadata"]["name"]: item for item in self._api.list(within(_namespace(pod), SECRETS))}
        hold = hold_of(pod, secrets)
        if not hold and pod["metadata"]["uid"] not in self._held:
            return
        change = kubelet.status_change(pod, hold, now())
        if change and self._api.patch(path_of(pod) + "/status", change, STRATEGIC_PATCH) and hold:
            self._api.event(pod, "kubelet", "Warning", "Failed", f"Error: {hold.message}")
        if hold:
            self._held[pod["metadata"]["uid"]] = pod
        else:
            del self._held[pod["metadata"]["uid"]]

    def step(self) -> None:
        """Look again at the pods that are held back."""
        for uid, held in list(self._held.items()):
            pod = self._api.get(path_of(held))
            if pod is None or pod["metadata"]["uid"] != uid:
                del self._held[uid]
            else:
                self.admit(pod)


def hold_of(pod: Mapping[str, Any], secrets: Mapping[str, Object]) -> Hold | None:
    """Return why a pod's container does not start, given the Secrets of its namespace by name."""
    for container, at in _references(pod):
        secret = secrets.get(at["name"])
        if secret is None:
            return Hold(container, kubelet.UNSET, f'secret "{at["name"]}" not found')
        if at["key"] not in (secret.get("data") or {}):
            message = f"couldn't find key {at['key']} in Secret {_namespace(pod)}/{at['name']}"
            return Hold(container, kubelet.UNSET, message)
    return None


def _references(pod: Mapping[str, Any]) -> Iterator[tuple[str, Object]]:
    """Yield each Secret that a variable must have, with the name of the container."""
    for container in pod["spec"].get("containers") or []:
        for variable in container.get("env") or []:
            at = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if at and not at.get("optional"):
                yield container["name"], dict(at)


def _namespace(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["namespace"])
