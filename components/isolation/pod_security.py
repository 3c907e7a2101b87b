"""Pod Security Admission: the strictest level that pods can be held to, and what they have to say for it.

The rules are those of https://kubernetes.io/docs/concepts/security/pod-security-standards/. They are only asked which level a
namespace gets; whether a pod keeps to it, the API server decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from berth.components.isolation.settings import PodSecurity
from berth.components.isolation.templates import Object, templates

ENFORCE = "pod-security.kubernetes.io/enforce"
"""The label of a namespace for the level that the API server refuses pods by."""

RAY_USER = 1000
"""User `ray` of Ray's images (https://github.com/ray-project/ray, docker/base-deps/Dockerfile). It is said outright, as an image that
names its user by name lets nobody tell that it isn't root."""

RESTRICTED_CONTAINER: Object = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What `restricted` asks of each container."""

RESTRICTED_POD: Object = {
    "runAsNonRoot": True,
    "runAsUser": RAY_USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What `restricted` asks of a pod."""

_LEVELS: tuple[PodSecurity, ...] = get_args(PodSecurity)

_BASELINE_CAPABILITIES = {
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
}
_RESTRICTED_CAPABILITIES = {"NET_BIND_SERVICE"}
_RESTRICTED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
}
_SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}


def level_of(manifests: Iterable[Object], strictest: PodSecurity = "restricted") -> PodSecurity:
    """The strictest level that all pods of a namespace can be held to.

    Args:
        manifests: what makes the pods: of Ray's kinds.
        strictest: none is stricter than this.
    """
    needed = [needed_by(template["spec"]) for manifest in manifests for _, template, _ in templates(manifest)]
    return max([strictest, *needed], key=_LEVELS.index)


def needed_by(pod: Object) -> PodSecurity:
    """The strictest level that a pod can be held to, once it says what that level asks for.

    Args:
        pod: the pod's spec.
    """
    if any(_of_the_node(pod)):
        return "privileged"
    return "baseline" if any(_not_restricted(pod)) else "restricted"


def restricted(pod: Object) -> Object:
    """A pod's spec that says what `restricted` asks for, wherever it says nothing itself.

    KubeRay's own container that waits for the head says what Ray's does (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go).

    Args:
        pod: a spec whose `needed_by` is `restricted`.
    """
    contained: Object = {
        kind: [
            {**each, "securityContext": {**RESTRICTED_CONTAINER, **(each.get("securityContext") or {})}}
            for each in pod[kind]
        ]
        for kind in ("initContainers", "containers")
        if kind in pod
    }
    return {**pod, **contained, "securityContext": {**RESTRICTED_POD, **(pod.get("securityContext") or {})}}


def _containers(pod: Object) -> list[Object]:
    return [each for kind in ("initContainers", "containers", "ephemeralContainers") for each in pod.get(kind) or []]


def _contexts(pod: Object) -> list[Object]:
    return [pod.get("securityContext") or {}, *(each.get("securityContext") or {} for each in _containers(pod))]


def _added(context: Object) -> set[str]:
    return set((context.get("capabilities") or {}).get("add") or [])


def _of_the_node(pod: Object) -> Iterator[bool]:
    """What `baseline` refuses."""
    yield any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    yield any("hostPath" in volume for volume in pod.get("volumes") or [])
    for container in _containers(pod):
        yield any(port.get("hostPort") for port in container.get("ports") or [])
        yield any(_host_of(container))
    for context in _contexts(pod):
        yield bool(context.get("privileged"))
        yield not _added(context) <= _BASELINE_CAPABILITIES
        yield context.get("procMount", "Default") != "Default"
        yield (context.get("seccompProfile") or {}).get("type") == "Unconfined"
        yield (context.get("appArmorProfile") or {}).get("type") == "Unconfined"
        yield bool((context.get("windowsOptions") or {}).get("hostProcess"))
        selinux = context.get("seLinuxOptions") or {}
        yield selinux.get("type", "") not in _SELINUX_TYPES or bool(selinux.get("user") or selinux.get("role"))
        yield any(entry["name"] not in _SAFE_SYSCTLS for entry in context.get("sysctls") or [])


def _host_of(container: Object) -> Iterator[bool]:
    """Whether a probe or a hook of a container asks a host that it names."""
    hooks: list[Any] = [container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")]
    hooks += (container.get("lifecycle") or {}).values()
    for hook in hooks:
        for kind in ("httpGet", "tcpSocket"):
            yield bool(((hook or {}).get(kind) or {}).get("host"))


def _not_restricted(pod: Object) -> Iterator[bool]:
    """What `restricted` refuses beside that, where a pod says it itself."""
    for volume in pod.get("volumes") or []:
        yield not (volume.keys() - {"name"}) <= _RESTRICTED_VOLUMES
    for context in _contexts(pod):
        yield context.get("allowPrivilegeEscalation") is True
        yield context.get("runAsNonRoot") is False
        yield context.get("runAsUser") == 0
        yield not _added(context) <= _RESTRICTED_CAPABILITIES
        dropped = (context.get("capabilities") or {}).get("drop")
        yield "capabilities" in context and "ALL" not in (dropped or [])
