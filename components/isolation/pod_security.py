"""Pod Security Admission: the strictest level that pods can meet, and the fields for it.

The rules are those of https://kubernetes.io/docs/concepts/security/pod-security-standards/. They
choose the level of a namespace; the API server enforces it.
"""

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from berth.components.core import fast_yaml
from berth.components.isolation.pod_templates import Object, pods_of
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

_ALLOWED: dict[str, list[str]] = fast_yaml.load_beside(__file__, "pod-security.yaml")

RESTRICTED_VOLUMES = frozenset(_ALLOWED["restricted_volumes"])
"""Kinds of volumes that `restricted` allows. The node mounts the others, out of reach of
NetworkPolicies: a folder of its own, or a file server."""


def pod_security_level(
    manifests: Iterable[Object], strictest: PodSecurity = "restricted"
) -> PodSecurity:
    """Return the strictest level, up to a bound, that all pods of a namespace can meet."""
    return max([strictest, *map(needed_by, pods_of(manifests))], key=_LEVELS.index)


def needed_by(pod: Object) -> PodSecurity:
    """Return the strictest level that a pod spec can meet with the fields of that level."""
    if any(_above_baseline(pod)):
        return "privileged"
    return "baseline" if any(_above_restricted(pod)) else "restricted"


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
        kept = {
            key: inner
            for key, inner in part.items()
            if key not in ("seccompProfile", "appArmorProfile")
        }
        return {key: without_profiles(inner) for key, inner in kept.items()}
    return part


def restricted(pod: Object) -> Object:
    """Return a pod spec with the security contexts of `restricted`; fields of the pod win.

    KubeRay copies the context of Ray's container to the init container that waits for the head
    (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go).
    """
    containers: Object = {
        kind: [
            {
                **container,
                "securityContext": {
                    **RESTRICTED_CONTAINER,
                    **(container.get("securityContext") or {}),
                },
            }
            for container in pod[kind]
        ]
        for kind in ("initContainers", "containers")
        if kind in pod
    }
    return {
        **pod,
        **containers,
        "securityContext": {**RESTRICTED_POD, **(pod.get("securityContext") or {})},
    }


def _containers(pod: Object) -> list[Object]:
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return [container for kind in kinds for container in pod.get(kind) or []]


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
        yield not _added(context) <= {*_ALLOWED["baseline_capabilities"]}
        yield context.get("procMount", "Default") != "Default"
        yield any(
            (context.get(f"{kind}Profile") or {}).get("type") == "Unconfined"
            for kind in ("seccomp", "appArmor")
        )
        yield bool((context.get("windowsOptions") or {}).get("hostProcess"))
        selinux = context.get("seLinuxOptions") or {}
        yield selinux.get("type", "") not in _ALLOWED["selinux_types"] or bool(
            selinux.get("user") or selinux.get("role")
        )
        yield any(
            entry["name"] not in _ALLOWED["safe_sysctls"] for entry in context.get("sysctls") or []
        )


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
        yield not _added(context) <= {*_ALLOWED["restricted_capabilities"]}
        dropped = (context.get("capabilities") or {}).get("drop")
        yield "capabilities" in context and "ALL" not in (dropped or [])
