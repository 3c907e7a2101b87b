"""Parts of a RayCluster's pods that give containers inside them the pods' GPUs, for each way.

Tested with podman 4.3.1 and crun 1.8.1 as a user without any capability; docs/advanced.md
explains each part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
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


@dataclass(frozen=True)
class Parts:
    """Parts of a pod that containers inside its Ray container need.

    Attributes:
        env: environment variables of the container; variables of the settings win.
        command: shell commands before `ray start`, which KubeRay appends (kuberay v1.6.2,
            ray-operator/controllers/ray/common/pod.go, BuildPod).
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
        "data": _data(),
    }


def _cdi_per_pod() -> Parts:
    name = "nested-containers"
    items = [{"key": PurePath(path).name, "path": path} for path in _files()]
    data = {"name": name, "configMap": {"name": _config_map_name(), "defaultMode": 0o555, "items": items}}
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
            *(
                {"name": name, "mountPath": f"/etc/{file}", "subPath": f"etc/{file}", "readOnly": True}
                for file in ("subuid", "subgid")
            ),
        ],
        env={
            "CONTAINERS_CONF": f"{FOLDER}/etc/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{FOLDER}/etc/storage.conf",
        },
        # Ray passes its variables to podman as arguments, which are visible in the pod and in Ray's
        # logs, but it mounts a token that is a file (ray 2.60.0,
        # python/ray/_private/runtime_env/image_uri.py).
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


@cache
def _files() -> dict[str, str]:
    """Return the files of the ConfigMap by their path in the folder.

    Files for the ranges of user ids are empty: podman maps the ranges that an image lists, which
    takes privileges.
    """
    programs_folder, own_folder = Path(programs.__file__).parent, Path(__file__).parent
    sources = {"bin/podman": programs_folder / "podman.py", "bin/cdi.py": programs_folder / "cdi.py"}
    for name in ("environment.sh", "containers.conf", "storage.conf", "subuid", "subgid"):
        sources[f"etc/{name}"] = own_folder / "etc" / name
    return {path: source.read_text(encoding="utf-8") for path, source in sources.items()}


def _data() -> dict[str, str]:
    return {PurePath(path).name: text for path, text in _files().items()}


def _config_map_name() -> str:
    text = "\0".join(f"{key}\0{content}" for key, content in _data().items())
    return f"nested-containers-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
