"""Containers that Ray starts inside its pods: parts of the pods that give them the pods' GPUs.

Tested with podman 4.3.1 and crun 1.8.1 as a user without any capability; `berth docs
advanced#nested-containers` explains each part. Does not belong here: the programs that run in the
pods (components/programs/cdi.py, podman.py).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Literal

from berth.components import programs
from berth.components.core.manifest import Manifest
from berth.components.core.merge import merged
from berth.components.isolation import RAY_USER, RESTRICTED_CONTAINER

NestedContainers = Literal["none", "cdi-per-pod", "nvidia-runtime"]
"""Way in which containers inside Ray's pods get the pods' GPUs."""

RUNTIME_CLASS = "nvidia"
"""RuntimeClass that the GPU Operator creates."""

_FOLDER = "/opt/berth/nested"
# Volumes of a pod.
_PROGRAMS = "nested-containers"
_CDI = "cdi"
_STORAGE = "nested-storage"


@dataclass(frozen=True)
class NestedParts:
    """Parts of a pod that containers inside its Ray container need."""

    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the container; variables of the settings win."""
    command: list[str] = field(default_factory=list)
    """Shell commands before `ray start`, which KubeRay appends (kuberay v1.6.2,
    ray-operator/controllers/ray/common/pod.go, BuildPod)."""
    security_context: dict[str, Any] = field(default_factory=dict)
    runtime_class: str | None = None


def nested_parts(way: NestedContainers, *, gpus: int) -> NestedParts:
    """Return the parts of a pod that has a number of GPUs or shares."""
    if way == "cdi-per-pod":
        return _cdi_per_pod()
    if way == "nvidia-runtime" and gpus:
        return NestedParts(runtime_class=RUNTIME_CLASS)
    return NestedParts()


def with_nested_parts(template: Mapping[str, Any], parts: NestedParts) -> dict[str, Any]:
    """Return a pod template with the parts in its first container, Ray's.

    On a conflict the template's environment wins, and the parts' security context.
    """
    if parts == NestedParts():
        return dict(template)
    spec: dict[str, Any] = dict(template["spec"])
    ray, *others = spec["containers"]
    spec["containers"] = [_with_container_parts(ray, parts), *others]
    if parts.volumes:
        spec["volumes"] = [*spec.get("volumes", []), *parts.volumes]
    if parts.runtime_class:
        spec["runtimeClassName"] = parts.runtime_class
    return {**template, "spec": spec}


def _with_container_parts(container: Mapping[str, Any], parts: NestedParts) -> dict[str, Any]:
    env = list(container.get("env", []))
    names = {variable["name"] for variable in env}
    env += [{"name": name, "value": parts.env[name]} for name in parts.env if name not in names]
    command = list(container.get("command", []))
    if command and parts.command:
        command.append("&&")
    command += parts.command
    changes = {
        "env": env,
        "volumeMounts": [*container.get("volumeMounts", []), *parts.mounts],
        "command": command,
        "securityContext": merged(container.get("securityContext", {}), parts.security_context),
    }
    return {**container, **{key: value for key, value in changes.items() if value}}


def programs_config_map(
    way: NestedContainers, namespace: str, labels: dict[str, str]
) -> Manifest | None:
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


@cache
def _cdi_per_pod() -> NestedParts:
    """Return the parts of a pod whose containers see its GPUs through a CDI specification."""
    items = [{"key": PurePath(path).name, "path": path} for path in _files()]
    # Podman and cdi.py are programs that run, so the files are executable.
    of_programs = {"name": _config_map_name(), "defaultMode": 0o555, "items": items}
    return NestedParts(
        volumes=[
            {"name": _PROGRAMS, "configMap": of_programs},
            {"name": _CDI, "emptyDir": {}},
            {"name": _STORAGE, "emptyDir": {}},
        ],
        mounts=[
            {"name": _PROGRAMS, "mountPath": _FOLDER, "readOnly": True},
            {"name": _CDI, "mountPath": "/etc/cdi"},
            {"name": _STORAGE, "mountPath": "/var/lib/containers"},
            *(
                {"name": _PROGRAMS, "mountPath": f"/{path}", "subPath": path, "readOnly": True}
                for path in ("etc/subuid", "etc/subgid")
            ),
        ],
        env={
            "CONTAINERS_CONF": f"{_FOLDER}/etc/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{_FOLDER}/etc/storage.conf",
        },
        # Ray passes its variables to podman as arguments, which are visible in the pod and in Ray's
        # logs, but it mounts a token that is a file (ray 2.60.0,
        # python/ray/_private/runtime_env/image_uri.py).
        command=[f". {_FOLDER}/etc/environment.sh"],
        security_context={
            **RESTRICTED_CONTAINER,
            "runAsUser": RAY_USER,
            "runAsNonRoot": True,
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
    programs_folder = Path(programs.__file__).parent
    own_folder = Path(__file__).parent
    sources = {
        "bin/podman": programs_folder / "podman.py",
        "bin/cdi.py": programs_folder / "cdi.py",
    }
    for name in ("environment.sh", "containers.conf", "storage.conf", "subuid", "subgid"):
        sources[f"etc/{name}"] = own_folder / "etc" / name
    return {path: source.read_text(encoding="utf-8") for path, source in sources.items()}


def _data() -> dict[str, str]:
    return {PurePath(path).name: text for path, text in _files().items()}


def _config_map_name() -> str:
    text = "\0".join(f"{key}\0{content}" for key, content in _data().items())
    return f"nested-containers-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
