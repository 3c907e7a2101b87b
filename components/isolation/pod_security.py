"""Pod Security Admission: the strictest level that pods can meet, and the fields for it.

The rules are those of https://kubernetes.io/docs/concepts/security/pod-security-standards/. They
choose the level of a namespace; the API server enforces it.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

from berth.components.core.merge import REMOVES
from berth.components.core.problems import SettingPath
from berth.components.isolation.pod_templates import Object
from berth.components.isolation.settings import PodSecurity

ENFORCE = "pod-security.kubernetes.io/enforce"
"""Label of a namespace with the level that the API server enforces."""

RAY_USER = 1000
"""User `ray` of Ray's images (https://github.com/ray-project/ray, docker/base-deps/Dockerfile). The
number is explicit because Kubernetes cannot verify that a user given by name is not root."""

RESTRICTED_CONTAINER: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
"""Security context that `restricted` requires of each container."""

RESTRICTED_POD: Object = {
    "runAsNonRoot": True,
    "runAsUser": RAY_USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Security context that `restricted` requires of a pod."""

_LEVELS: tuple[PodSecurity, ...] = get_args(PodSecurity)

_BASELINE_CAPABILITIES = frozenset(
    {
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
)
_RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})
_SAFE_SYSCTLS = frozenset(
    {
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
)
_SELINUX_TYPES = frozenset(
    {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
)

RESTRICTED_VOLUMES = frozenset(
    {
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
)
"""Kinds of volumes that `restricted` allows. The node mounts the others, out of reach of
NetworkPolicies: a folder of its own, or a file server."""


def pod_security_level(
    pods: Iterable[Object], strictest: PodSecurity = "restricted"
) -> PodSecurity:
    """Return the strictest level, up to a bound, that all pod specs of a namespace can meet."""
    return max([strictest, *map(needed_by, pods)], key=_LEVELS.index)


def needed_by(pod: Object) -> PodSecurity:
    """Return the strictest level that a pod spec can meet with the fields of that level."""
    if any(_above_baseline(pod)):
        return "privileged"
    return "baseline" if any(_above_restricted(pod)) else "restricted"


def places_beyond(spec: Object, level: PodSecurity) -> Iterator[SettingPath]:
    """Yield the places in a part of a pod spec, such as a patch, that a level does not admit."""
    for path, part in _smallest_parts(spec):
        if _LEVELS.index(needed_by(part)) > _LEVELS.index(level):
            yield path


def _smallest_parts(spec: Object) -> Iterator[tuple[SettingPath, Object]]:
    """Yield pod specs with one field each of security contexts and containers, or one volume."""
    for position, volume in enumerate(spec.get("volumes") or []):
        if REMOVES not in volume:
            yield ("volumes", position), {"volumes": [volume]}
    for path, part in _fields(spec, "securityContext"):
        yield path, part
    for kind in ("initContainers", "containers"):
        for position, container in enumerate(spec.get(kind) or []):
            for field in container:
                for path, part in _fields(container, field):
                    yield (kind, position, *path), {kind: [part]}


def _fields(owner: Object, key: str) -> Iterator[tuple[SettingPath, Object]]:
    """Yield the fields of a security context, or another field as a whole; none that is null."""
    value = owner.get(key)
    if key != "securityContext":
        yield (key,), {key: value}
        return
    for field, inner in (value or {}).items():
        if inner is not None:
            yield (key, field), {key: {field: inner}}


def without_folders(pod: Object) -> Object:
    """Return a pod spec without the volumes that are folders of its node."""
    return {
        **pod,
        "volumes": [volume for volume in pod.get("volumes") or [] if "hostPath" not in volume],
    }


def without_profiles(part: Any) -> Any:
    """Return a part of a pod spec without the profiles of seccomp and AppArmor that it names."""
    if isinstance(part, list):
        return [without_profiles(entry) for entry in part]
    if isinstance(part, dict):
        profiles = ("seccompProfile", "appArmorProfile")
        return {key: without_profiles(part[key]) for key in part if key not in profiles}
    return part


def with_restricted_contexts(pod: Object) -> Object:
    """Return a pod spec with the security contexts of `restricted`; fields of the pod win.

    KubeRay copies the context of Ray's container to the init container that waits for the head
    (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go).
    """
    hardened = dict(pod)
    for kind in ("initContainers", "containers"):
        if kind in pod:
            hardened[kind] = [_restricted_container(container) for container in pod[kind]]
    hardened["securityContext"] = {**RESTRICTED_POD, **(pod.get("securityContext") or {})}
    return hardened


def _restricted_container(container: Object) -> Object:
    context = {**RESTRICTED_CONTAINER, **(container.get("securityContext") or {})}
    return {**container, "securityContext": context}


def _containers(pod: Object) -> list[Object]:
    containers: list[Object] = []
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        containers += pod.get(kind) or []
    return containers


def _contexts(pod: Object) -> list[Object]:
    return [part.get("securityContext") or {} for part in (pod, *_containers(pod))]


def _added(context: Object) -> set[str]:
    return set((context.get("capabilities") or {}).get("add") or [])


def _above_baseline(pod: Object) -> Iterator[bool]:
    """Yield whether each rule of `baseline` refuses a pod."""
    yield any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    yield any("hostPath" in volume for volume in pod.get("volumes") or [])
    for container in _containers(pod):
        yield any(port.get("hostPort") for port in container.get("ports") or [])
        yield any(_probed_hosts(container))
    for context in _contexts(pod):
        yield bool(context.get("privileged"))
        yield not _added(context) <= _BASELINE_CAPABILITIES
        yield context.get("procMount", "Default") != "Default"
        yield "Unconfined" in (_profile(context, "seccomp"), _profile(context, "appArmor"))
        yield bool((context.get("windowsOptions") or {}).get("hostProcess"))
        yield _chooses_selinux(context.get("seLinuxOptions") or {})
        sysctls = {sysctl["name"] for sysctl in context.get("sysctls") or []}
        yield not sysctls <= _SAFE_SYSCTLS


def _profile(context: Object, kind: Literal["seccomp", "appArmor"]) -> str | None:
    """Return the type of a profile that a security context names; None without one."""
    profile: str | None = (context.get(f"{kind}Profile") or {}).get("type")
    return profile


def _chooses_selinux(options: Object) -> bool:
    allowed = options.get("type", "") in _SELINUX_TYPES
    return not allowed or bool(options.get("user") or options.get("role"))


def _probed_hosts(container: Object) -> Iterator[bool]:
    hooks: list[Any] = [
        container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")
    ]
    hooks += (container.get("lifecycle") or {}).values()
    for hook in hooks:
        for kind in ("httpGet", "tcpSocket"):
            yield bool(((hook or {}).get(kind) or {}).get("host"))


def _above_restricted(pod: Object) -> Iterator[bool]:
    """Yield whether each rule of `restricted` beyond `baseline` refuses a field that a pod sets."""
    for volume in pod.get("volumes") or []:
        yield not (volume.keys() - {"name"}) <= RESTRICTED_VOLUMES
    for context in _contexts(pod):
        yield context.get("allowPrivilegeEscalation") is True
        yield context.get("runAsNonRoot") is False
        yield context.get("runAsUser") == 0
        yield not _added(context) <= _RESTRICTED_CAPABILITIES
        dropped = (context.get("capabilities") or {}).get("drop")
        yield "capabilities" in context and "ALL" not in (dropped or [])
