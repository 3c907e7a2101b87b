"""Fields of a pod that no patch may have, with the setting or the way that there is instead.

The admission policy `berth-pods` refuses most of them again, for pods of every origin
(components/isolation/admission.py). Here they have a line, before anything is created.
"""

from __future__ import annotations

from typing import Any

from berth.components.core.problems import Path
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.isolation import (
    DEVICE_ANNOTATIONS,
    LONGEST_GRACE,
    NETWORK_ANNOTATIONS,
    RESTRICTED_VOLUMES,
)

_NODE = "berths on one node are isolated from one another, and the API server would refuse the pods; take it out"
_PROFILE = (
    "has the Pod Security level `privileged`; take it out, or write `nestedContainers: cdi-per-pod`, which needs it"
)
_NAMES = "KubeRay names the pods and gives them their namespace; take it out"
_RANK = "write `priority` of the berth, the only class that its pods may have"
_ACCOUNT = "Ray's pods run without a token of the API server, except for Ray's autoscaler; take it out"
_CLAIMS = "write `worker.gpus` and `worker.nics` on a pool whose devices are claimed"
_SIZE = "write `cpu` and `memory` of the head or the worker, and resources of sidecars under `containers`"

# Paths with `container` for an entry of `containers` and `initContainers`, without positions.
_REFUSED = {
    "metadata.name": _NAMES,
    "metadata.namespace": _NAMES,
    "metadata.finalizers": "nothing would end a pod with a finalizer; take it out",
    "spec.nodeName": "the scheduler chooses the node; write `pool`, and nodeSelector or affinity within it",
    "spec.schedulerName": "another scheduler may ignore the pool, and berth could not explain a pod that waits; take"
    " it out",
    "spec.priorityClassName": _RANK,
    "spec.priority": _RANK,
    "spec.preemptionPolicy": _RANK,
    "spec.serviceAccountName": _ACCOUNT,
    "spec.serviceAccount": _ACCOUNT,
    "spec.automountServiceAccountToken": _ACCOUNT,
    "spec.hostNetwork": _NODE,
    "spec.hostPID": _NODE,
    "spec.hostIPC": _NODE,
    "spec.resourceClaims": _CLAIMS,
    "spec.resources": _SIZE,
    "spec.overhead": "the API server sets it by `runtimeClassName`; take it out",
    "spec.ephemeralContainers": "only a pod that runs can have one; run kubectl debug",
    "spec.securityContext.sysctls": _NODE,
    "spec.securityContext.windowsOptions": _NODE,
    "spec.securityContext.seLinuxOptions": _NODE,
    "container.resources.claims": _CLAIMS,
    "container.securityContext.privileged": _NODE,
    "container.securityContext.capabilities.add": _NODE,
    "container.securityContext.procMount": _NODE,
    "container.securityContext.windowsOptions": _NODE,
    "container.securityContext.seLinuxOptions": _NODE,
    "container.ports.hostPort": _NODE,
}
_HARMLESS: tuple[Any, ...] = (False, 0, "", {}, [])
"""Values that ask for nothing."""

_LABELS = (
    "berth/",
    "ray.io/",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name",
    "app.kubernetes.io/created-by",
)
"""Labels that berth and KubeRay set (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go,
labelPod), by which network policies and load balancers find the pods."""

_ANNOTATIONS = {
    "berth/": "berth sets it; take it out",
    "ray.io/": "KubeRay reads it, and berth's settings are about the same; take it out",
    "gke-gcsfuse/": "write `volumes: {data: {bucket: NAME, at: /data}}`, which sets it",
    "container.apparmor.security.beta.kubernetes.io/": "write `securityContext.appArmorProfile` of the container",
    **dict.fromkeys(DEVICE_ANNOTATIONS, "it asks for devices that no quota counts; write `worker.gpus`"),
    **dict.fromkeys(NETWORK_ANNOTATIONS, "no NetworkPolicy holds in a network that it adds; take it out"),
}

_VARIABLES = {
    VISIBLE_DEVICES: "a container would see GPUs of other pods; write `worker.gpus`",
    "RAY_AUTH_MODE": "write `auth` of the berth",
}
_CONTAINERS = {
    "autoscaler": "KubeRay adds a container of this name",
    "wait-gcs-ready": "KubeRay adds a container of this name",
    "gke-gcsfuse-sidecar": "GKE adds a container of this name",
}
_SIZES = ("cpu", "memory", "ephemeral-storage", "hugepages-")


def refusal(path: Path, value: Any) -> str:
    """Return why a patch may not have a value at a path; "" for what it may have."""
    if not path or isinstance(path[-1], int):
        return ""
    name, last = _name(path), str(path[-1])
    if name in _REFUSED:
        return "" if value in _HARMLESS else f"is not for a patch: {_REFUSED[name]}"
    return _of_key(name.removesuffix(f".{last}"), last) or _of_value(name, value)


def _of_key(parent: str, key: str) -> str:
    """Return why a mapping of a patch may not have a key."""
    if parent == "metadata.labels" and key.startswith(_LABELS):
        return "is a label of berth's or KubeRay's own, by which pods are found; take another key"
    if parent == "metadata.annotations":
        words = next((words for prefix, words in _ANNOTATIONS.items() if key.startswith(prefix)), "")
        return f"is not for a patch: {words}" if words else ""
    if parent == "spec.volumes" and key not in {"name", *RESTRICTED_VOLUMES}:
        return (
            "is mounted by the node, out of reach of NetworkPolicies; make a PersistentVolumeClaim of it, and write"
            " `volumes: {data: {claim: NAME, at: /data}}` of the berth"
        )
    if parent in ("container.resources.limits", "container.resources.requests") and not key.startswith(_SIZES):
        return "is a device, and devices go to Ray's container alone; write `worker.gpus`"
    return ""


def _of_value(name: str, value: Any) -> str:
    """Return why a field of a patch may not have a value."""
    if name.endswith(("seccompProfile.type", "appArmorProfile.type")) and value == "Unconfined":
        return f"{value!r} {_PROFILE}"
    if name.endswith(("httpGet.host", "tcpSocket.host")) and value:
        return "Pod Security refuses a probe of another host; take it out"
    if name == "spec.terminationGracePeriodSeconds" and isinstance(value, int) and value > LONGEST_GRACE:
        return f"is at most {LONGEST_GRACE}: a pod that takes longer to end outlives the hours of its berth"
    if name == "container.env.name" and value in _VARIABLES:
        return f"{value} is not for a patch: {_VARIABLES[value]}"
    if (name, value) == ("spec.volumes.name", "code"):
        return "'code' is taken: the code of a service is a volume of this name; take another name"
    if name == "container.name" and value in _CONTAINERS:
        return f"{value!r} is taken: {_CONTAINERS[value]}; take another name"
    return ""


def _name(path: Path) -> str:
    parts = [str(part) for part in path if not isinstance(part, int)]
    if parts[:2] in (["spec", "containers"], ["spec", "initContainers"]) and len(path) > len(parts):
        parts = ["container", *parts[2:]]
    return ".".join(parts)
