"""Refusals of a pod template's patch: fields, keys, names and values that no patch may have.

The admission policy berth-pods (components/isolation/pod-policy.yaml) refuses most of them again,
for pods of every origin. Here they have a line, before anything is created.
"""

from collections.abc import Mapping
from typing import Any

from berth.components.core.problems import SettingPath
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.isolation import LONGEST_GRACE, RESTRICTED_VOLUMES

_NAMES = "KubeRay names the pods and gives them their namespace; take it out"
_PRIORITY = "write `priority` of the berth, the only class that its pods may have"
_ACCOUNT = (
    "Ray's pods run without a token of the API server, except for Ray's autoscaler; take it out"
)
_NODE = (
    "berths on one node are isolated from one another, and the API server would refuse the pods;"
    " take it out"
)
_CAPABILITIES = (
    "containers of a berth add none: stack traces, which need SYS_PTRACE elsewhere, need `sudo`,"
    " which `isolation: {podSecurity: baseline}` allows, and RDMA needs no IPC_LOCK; take it out"
)
_CLAIMS = "write `worker.gpus` and `worker.nics` on a pool whose devices are claimed"

_FIELDS: Mapping[str, str] = {
    "metadata.name": _NAMES,
    "metadata.namespace": _NAMES,
    "metadata.finalizers": "nothing would end a pod with a finalizer; take it out",
    "spec.nodeName": (
        "the scheduler chooses the node; write `pool`, and nodeSelector or affinity within it"
    ),
    "spec.schedulerName": (
        "another scheduler may ignore the pool, and berth could not explain a pod that waits; take"
        " it out"
    ),
    "spec.priorityClassName": _PRIORITY,
    "spec.priority": _PRIORITY,
    "spec.preemptionPolicy": _PRIORITY,
    "spec.serviceAccountName": _ACCOUNT,
    "spec.serviceAccount": _ACCOUNT,
    "spec.automountServiceAccountToken": _ACCOUNT,
    "spec.hostNetwork": _NODE,
    "spec.hostPID": _NODE,
    "spec.hostIPC": _NODE,
    "spec.resourceClaims": _CLAIMS,
    "spec.resources": (
        "write `cpu` and `memory` of the head or the worker, and resources of sidecars under"
        " `containers`"
    ),
    "spec.overhead": "the API server sets it by `runtimeClassName`; take it out",
    "spec.ephemeralContainers": "only a pod that runs can have one; run kubectl debug",
    "spec.securityContext.sysctls": _NODE,
    "spec.securityContext.windowsOptions": _NODE,
    "spec.securityContext.seLinuxOptions": _NODE,
    "container.resources.claims": _CLAIMS,
    "container.securityContext.privileged": _NODE,
    "container.securityContext.capabilities.add": _CAPABILITIES,
    "container.securityContext.procMount": _NODE,
    "container.securityContext.windowsOptions": _NODE,
    "container.securityContext.seLinuxOptions": _NODE,
    "container.ports.hostPort": _NODE,
}
"""Reasons for refused fields; `container` stands for an entry of `containers` or
`initContainers`."""

_HARMLESS: tuple[Any, ...] = (False, 0, "", {}, [])
"""Values of refused fields that ask for nothing."""

DEVICE_ANNOTATIONS = (
    "nvidia.cdi.k8s.io",
    "cdi.k8s.io",
    "devices.gke.io",
    "devices.nri.io",
    "devices.noderesource.dev",
)
"""Beginnings of annotations that ask for devices."""

DEVICE_MOUNTS = "nvidia-container-devices"
"""Folder in whose mounts NVIDIA's toolkit reads devices, where that is switched on."""

NETWORK_ANNOTATIONS = (
    "networking.gke.io/interfaces",
    "networking.gke.io/default-interface",
    "k8s.v1.cni.cncf.io/networks",
)
"""Beginnings of annotations that add networks."""

_ANNOTATIONS: Mapping[str, str] = {
    "berth/": "berth sets it; take it out",
    "ray.io/": "KubeRay reads it, and berth's settings are about the same; take it out",
    "gke-gcsfuse/": "write `volumes: {data: {bucket: NAME, at: /data}}`, which sets it",
    "container.apparmor.security.beta.kubernetes.io/": (
        "write `securityContext.appArmorProfile` of the container"
    ),
    **dict.fromkeys(
        DEVICE_ANNOTATIONS, "it asks for devices that no quota counts; write `worker.gpus`"
    ),
    **dict.fromkeys(
        NETWORK_ANNOTATIONS, "no NetworkPolicy holds in a network that it adds; take it out"
    ),
}
"""Reasons for refused annotations, by the beginning of the key."""

_LABELS = (
    "berth/",
    "ray.io/",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name",
    "app.kubernetes.io/created-by",
)
"""Beginnings of labels that berth and KubeRay set (kuberay v1.6.2,
ray-operator/controllers/ray/common/pod.go, labelPod), by which network policies and load balancers
find the pods."""

_VARIABLES: Mapping[str, str] = {
    VISIBLE_DEVICES: "a container would see GPUs of other pods; write `worker.gpus`",
    "RAY_AUTH_MODE": "write `auth` of the berth",
}
"""Reasons for refused environment variables."""

_CONTAINERS_OF_OTHERS: Mapping[str, str] = {
    "autoscaler": "KubeRay adds a container of this name",
    "wait-gcs-ready": "KubeRay adds a container of this name",
    "gke-gcsfuse-sidecar": "GKE adds a container of this name",
}
_VOLUMES_OF_OTHERS: Mapping[str, str] = {"code": "the code of a service is a volume of this name"}

_SIZES = ("cpu", "memory", "ephemeral-storage", "hugepages-")
"""Beginnings of resources that are not devices."""


def refusal_of(path: SettingPath, value: Any) -> str:
    """Return why a patch may not have a value at a path; empty for what it may have."""
    if not path or isinstance(path[-1], int):
        return ""
    field = _field_name(path)
    if field in _FIELDS:
        return "" if value in _HARMLESS else f"is not for a patch: {_FIELDS[field]}"
    key = str(path[-1])
    return _refusal_of_key(field.removesuffix(f".{key}"), key) or _refusal_of_value(field, value)


def _refusal_of_key(parent: str, key: str) -> str:
    """Return why a mapping may not have a key."""
    if parent == "metadata.labels" and key.startswith(_LABELS):
        return "is a label of berth's or KubeRay's own, by which pods are found; take another key"
    if parent == "metadata.annotations":
        for prefix, reason in _ANNOTATIONS.items():
            if key.startswith(prefix):
                return f"is not for a patch: {reason}"
    if parent == "spec.volumes" and key not in {"name", *RESTRICTED_VOLUMES}:
        return (
            "is mounted by the node, out of reach of NetworkPolicies; make a PersistentVolumeClaim"
            " of it, and write `volumes: {data: {claim: NAME, at: /data}}` of the berth"
        )
    sizes = ("container.resources.limits", "container.resources.requests")
    if parent in sizes and not key.startswith(_SIZES):
        return "is a device, and devices go to Ray's container alone; write `worker.gpus`"
    return ""


def _refusal_of_value(field: str, value: Any) -> str:
    """Return why a field may not have a value."""
    profiles = ("seccompProfile.type", "appArmorProfile.type")
    if field.endswith(profiles) and value == "Unconfined":
        return (
            "'Unconfined' has the Pod Security level `privileged`; take it out, or write"
            " `nestedContainers: cdi-per-pod`, which needs it"
        )
    is_grace = field.endswith("terminationGracePeriodSeconds") and isinstance(value, int)
    if is_grace and value > LONGEST_GRACE:
        return (
            f"is at most {LONGEST_GRACE}: a pod that takes longer to end outlives the hours of its"
            " berth"
        )
    if field == "container.volumeMounts.mountPath" and DEVICE_MOUNTS in str(value):
        return "NVIDIA's toolkit may take it for a request of GPUs; write `worker.gpus`"
    if field.endswith(("httpGet.host", "tcpSocket.host")) and value:
        return "Pod Security refuses a probe of another host; take it out"
    return _refusal_of_name(field, str(value))


def _refusal_of_name(field: str, name: str) -> str:
    """Return why a variable, container or volume may not have a name."""
    if field == "container.env.name" and name in _VARIABLES:
        return f"{name} is not for a patch: {_VARIABLES[name]}"
    taken: Mapping[str, str] = {}
    if field == "container.name":
        taken = _CONTAINERS_OF_OTHERS
    elif field == "spec.volumes.name":
        taken = _VOLUMES_OF_OTHERS
    return f"{name!r} is taken: {taken[name]}; take another name" if name in taken else ""


def _field_name(path: SettingPath) -> str:
    """Return a path without positions, in which `container` stands for any container."""
    parts = [str(part) for part in path if not isinstance(part, int)]
    of_containers = parts[:2] in (["spec", "containers"], ["spec", "initContainers"])
    if of_containers and len(path) > len(parts):
        parts = ["container", *parts[2:]]
    return ".".join(parts)
