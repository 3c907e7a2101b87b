"""Which changes of objects can bear on the devices of nodes; heartbeats and others' business are passed over.

Simulates nothing: it tells which changes of objects the other modules look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berth.lab.devices import gpu_devices, network_devices
from berth.lab.devices.advertised import managed
from berth.lab.devices.operand_objects import OPERANDS, OWNED

if TYPE_CHECKING:
    from collections.abc import Mapping

_DISCOVERY = ("app.kubernetes.io/name", "node-feature-discovery")
# Pods that bring devices to their nodes.
_SERVING = {
    *(("app", operand.name) for operand in OPERANDS),
    network_devices.DAEMONSET,
    gpu_devices.DAEMONSET,
    _DISCOVERY,
}
# What a DaemonSet's status says of whether its pods are ready.
_ROLLED_OUT = ("observedGeneration", "desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")


class Observed:
    """What the objects looked like when they were seen last."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def knows(self, uid: str) -> bool:
        """Whether an object's changes are told of: it has been seen once."""
        return uid in self._seen

    def changed(self, kind: str, body: Mapping[str, Any], *, gone: bool) -> bool:
        """Take note of an object; whether it is another one, as far as devices go."""
        part = _part(kind, body)
        if part is None:
            return False
        uid = body["metadata"]["uid"]
        if gone:
            self._seen.pop(uid, None)
            return True
        before = self._seen.get(uid)
        self._seen[uid] = hash(repr(part))
        return before != self._seen[uid]


def _part(kind: str, body: Mapping[str, Any]) -> Any:
    """What counts of an object; None for one that has nothing to do with devices."""
    metadata = body["metadata"]
    status = body.get("status") or {}
    if kind == "Node":
        resources = [sorted(_gpus(status.get(part) or {}).items()) for part in ("capacity", "allocatable")]
        owned = (metadata.get("annotations") or {}).get(OWNED)
        return [sorted((metadata.get("labels") or {}).items()), owned, resources]
    if kind == "Pod":
        if not _SERVING & (metadata.get("labels") or {}).items():
            return None
        return [
            status.get("phase"),
            status.get("podIP"),
            metadata.get("deletionTimestamp"),
            body["spec"].get("nodeName"),
        ]
    if kind == "Deployment":
        ours = metadata["name"] == "gpu-operator" or _DISCOVERY in (metadata.get("labels") or {}).items()
        return [status.get("availableReplicas")] if ours else None
    if kind == "DaemonSet":
        return [
            metadata.get("generation"),
            metadata.get("deletionTimestamp"),
            *(status.get(key) for key in _ROLLED_OUT),
        ]
    return [metadata.get("generation"), metadata.get("deletionTimestamp")]


def _gpus(resources: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in resources.items() if managed(name)}
