"""Pods that a berth must refuse, as changes of a good pod."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def good_pod(name: str, priority: str) -> Object:
    """A pod that a berth admits."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "priorityClassName": priority,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "c",
                    "image": "example.invalid/image",
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }


def over(below: Any, above: Any) -> Any:
    """Merge `above` into `below`, key by key, lists index by index; null removes a key."""
    if isinstance(below, dict) and isinstance(above, dict):
        merged = {**below, **{key: over(below.get(key), value) for key, value in above.items()}}
        return {key: value for key, value in merged.items() if value is not None}
    if isinstance(below, list) and isinstance(above, list):
        return [*(over(*pair) for pair in zip(below, above, strict=False)), *below[len(above) :], *above[len(below) :]]
    return above


def _container(**fields: Any) -> Object:
    return {"containers": [fields]}


def _context(**fields: Any) -> Object:
    return _container(securityContext=fields)


def _volume(**source: Any) -> Object:
    return {"volumes": [{"name": "v", **source}]}


BAD_PODS: dict[str, Object] = {
    "privileged": _context(privileged=True, allowPrivilegeEscalation=None),
    "folder of the node": _volume(hostPath={"path": "/"}),
    "socket of the container runtime": _volume(hostPath={"path": "/run/containerd/containerd.sock", "type": "Socket"}),
    "network of the node": {"hostNetwork": True},
    "processes of the node": {"hostPID": True},
    "shared memory of the node": {"hostIPC": True},
    "port of the node": _container(ports=[{"containerPort": 8265, "hostPort": 8265}]),
    "administrator's capability": _context(capabilities={"add": ["SYS_ADMIN"]}),
    "capability for raw packets": _context(capabilities={"add": ["NET_RAW"]}),
    "capability to change the user": _context(capabilities={"add": ["SETUID"]}),
    "capabilities not dropped": _context(capabilities=None),
    "root in a container": _context(runAsUser=0),
    "root in the pod": {"securityContext": {"runAsUser": 0}},
    "maybe root": {"securityContext": {"runAsNonRoot": None}},
    "root allowed in a container": _context(runAsNonRoot=False),
    "more rights than its parent": _context(allowPrivilegeEscalation=True),
    "any system call": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "no profile of system calls": {"securityContext": {"seccompProfile": None}},
    "AppArmor off": _context(appArmorProfile={"type": "Unconfined"}),
    "unmasked /proc": _context(procMount="Unmasked") | {"hostUsers": False},
    "SELinux type of its own": _context(seLinuxOptions={"type": "spc_t"}),
    "kernel setting": {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}},
    "volume of a file server": _volume(nfs={"server": "10.0.0.2", "path": "/"}),
    "probe of another host": _container(livenessProbe={"tcpSocket": {"host": "10.0.0.2", "port": 22}}),
    "privileged before the others": {
        "initContainers": [{"name": "i", "image": "example.invalid/image", "securityContext": {"privileged": True}}]
    },
}
"""Specs over `good_pod`'s, by what is wrong with each."""
