"""Parts of a RayCluster's pods that give containers inside them the pods' GPUs, for each way.

Tested with podman 4.3.1 and crun 1.8.1 as a user without any capability; docs/nested-containers.md
explains each part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from berth.components import programs
from berth.components.core.manifest import Manifest
from berth.components.core.merge import merged
from berth.components.isolation import RAY_USER, RESTRICTED_CONTAINER
from berth.components.nested.settings import NestedContainers

FOLDER = "/opt/berth/nested"
"""Folder of the pods with the programs and the configuration of podman."""

RUNTIME_CLASS = "nvidia"
"""RuntimeClass that the GPU Operator creates."""

_CDI_FOLDER = "/etc/cdi"
_STORAGE = "/var/lib/containers"

_CONTAINERS_CONF = """\
# A pod's container can't mount a proc or make a network of its own without privileges: containers
# in it share the pod's.
[containers]
netns = "host"
pidns = "host"
ipcns = "host"
utsns = "host"
cgroupns = "host"
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
"""

_STORAGE_CONF = f"""\
# The pod's own file system is an overlay already, on which there can't be another; this folder is a
# volume.
[storage]
driver = "overlay"
graphroot = "{_STORAGE}/storage"
rootless_storage_path = "{_STORAGE}/storage"
# All files of an image belong to the one user that there is.
[storage.options.overlay]
ignore_chown_errors = "true"
"""

# Environment of `ray start`. Ray passes its variables to podman as arguments, which are visible in
# the pod and in Ray's logs, but it mounts a token that is a file (ray 2.60.0,
# python/ray/_private/runtime_env/image_uri.py).
_ENVIRONMENT = f"""\
export PATH={FOLDER}/bin:$PATH
if [ -n "$RAY_AUTH_TOKEN" ]; then
  export RAY_AUTH_TOKEN_PATH=$HOME/.ray/auth_token
  (umask 077 && mkdir -p "$HOME/.ray" && printf %s "$RAY_AUTH_TOKEN" >"$RAY_AUTH_TOKEN_PATH") && unset RAY_AUTH_TOKEN
fi
"""


@dataclass(frozen=True)
class Parts:
    """Parts of a pod that containers inside its Ray container need.

    Attributes:
        volumes: volumes of the pod.
        mounts: volume mounts of the container.
        env: environment variables of the container; variables of the settings win.
        command: shell commands before `ray start`, which KubeRay appends (kuberay v1.6.2,
            ray-operator/controllers/ray/common/pod.go, BuildPod).
        security_context: security context of the container.
        runtime_class: RuntimeClass of the pod.
    """

    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    security_context: dict[str, Any] = field(default_factory=dict)
    runtime_class: str | None = None


def parts_of(way: NestedContainers, *, gpus: int) -> Parts:
    """Return the parts of a pod that has a number of GPUs or shares."""
    if way == "cdi-per-pod":
        return _cdi_per_pod()
    return Parts(runtime_class=RUNTIME_CLASS) if way == "nvidia-runtime" and gpus else Parts()


def add_parts(template: Mapping[str, Any], parts: Parts) -> dict[str, Any]:
    """Return a pod template with the parts in its first container, Ray's.

    On a conflict the template's environment wins, and the parts' security context.
    """
    if parts == Parts():
        return dict(template)
    spec: dict[str, Any] = dict(template["spec"])
    ray, *others = spec["containers"]
    named = {variable["name"] for variable in ray.get("env", [])}
    ours = [{"name": name, "value": value} for name, value in parts.env.items() if name not in named]
    command = [*ray.get("command", []), *(["&&"] if ray.get("command") and parts.command else []), *parts.command]
    changes = {
        "env": [*ray.get("env", []), *ours],
        "volumeMounts": [*ray.get("volumeMounts", []), *parts.mounts],
        "command": command,
        "securityContext": merged(ray.get("securityContext", {}), parts.security_context),
    }
    container = {**ray, **{key: value for key, value in changes.items() if value}}
    spec["containers"] = [container, *others]
    if parts.volumes:
        spec["volumes"] = [*spec.get("volumes", []), *parts.volumes]
    if parts.runtime_class:
        spec["runtimeClassName"] = parts.runtime_class
    return {**template, "spec": spec}


def config_map(way: NestedContainers, namespace: str, labels: dict[str, str]) -> Manifest | None:
    """Return the ConfigMap of programs, named after its content; None if the way needs none."""
    if way != "cdi-per-pod":
        return None
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _config_map_name(), "namespace": namespace, "labels": labels},
        "immutable": True,
        "data": _files(),
    }


def _cdi_per_pod() -> Parts:
    name = "nested-containers"
    data = {"name": name, "configMap": {"name": _config_map_name(), "defaultMode": 0o555, "items": _items()}}
    return Parts(
        volumes=[
            data,
            {"name": "cdi", "emptyDir": {}},
            {"name": "nested-storage", "emptyDir": {}},
        ],
        mounts=[
            {"name": name, "mountPath": FOLDER, "readOnly": True},
            {"name": "cdi", "mountPath": _CDI_FOLDER},
            {"name": "nested-storage", "mountPath": _STORAGE},
            # Podman maps the user ranges that an image lists, which takes privileges; empty files
            # list none.
            *(
                {"name": name, "mountPath": f"/etc/{file}", "subPath": f"etc/{file}", "readOnly": True}
                for file in ("subuid", "subgid")
            ),
        ],
        env={
            "CONTAINERS_CONF": f"{FOLDER}/etc/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{FOLDER}/etc/storage.conf",
        },
        command=[f". {FOLDER}/etc/environment.sh"],
        security_context={
            **RESTRICTED_CONTAINER,
            "runAsNonRoot": True,
            "runAsUser": RAY_USER,
            # Podman creates namespaces with mounts, which the default profiles forbid.
            "seccompProfile": {"type": "Unconfined"},
            "appArmorProfile": {"type": "Unconfined"},
        },
    )


_PATHS = {
    "podman": "bin/podman",
    "cdi.py": "bin/cdi.py",
    "environment.sh": "etc/environment.sh",
    "containers.conf": "etc/containers.conf",
    "storage.conf": "etc/storage.conf",
    "subuid": "etc/subuid",
    "subgid": "etc/subgid",
}
"""Path of each key of the ConfigMap in the folder."""


@cache
def _files() -> dict[str, str]:
    folder = Path(programs.__file__).parent
    return {
        "podman": (folder / "podman.py").read_text(encoding="utf-8"),
        "cdi.py": (folder / "cdi.py").read_text(encoding="utf-8"),
        "environment.sh": _ENVIRONMENT,
        "containers.conf": _CONTAINERS_CONF,
        "storage.conf": _STORAGE_CONF,
        "subuid": "",
        "subgid": "",
    }


def _items() -> list[dict[str, Any]]:
    return [{"key": key, "path": path} for key, path in _PATHS.items()]


def _config_map_name() -> str:
    text = "\0".join(f"{key}\0{content}" for key, content in _files().items())
    return f"nested-containers-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
