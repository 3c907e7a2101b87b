"""DaemonSets and runtime classes of the GPU Operator, as functions of the ClusterPolicy. Pure.

What differs from DaemonSet to DaemonSet is in `operands.yaml`. Left out: commands, service
accounts, host paths but the driver's, and variables that only containers read. Settings that reach
a pod by such a variable are in a digest beside it, so that their change starts the pod again.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from berth.components.cluster.api import Object
from berth.components.core.fast_yaml import load_file
from berth.lab.devices.gpu_operator import DEPLOY, OperatorPolicy

DRIVER = "nvidia-driver-daemonset"
TOOLKIT = "nvidia-container-toolkit-daemonset"
VALIDATOR = "nvidia-operator-validator"
PLUGIN = "nvidia-device-plugin-daemonset"
DISCOVERY = "gpu-feature-discovery"
MIG_MANAGER = "nvidia-mig-manager"
_MPS_DAEMON = "nvidia-device-plugin-mps-control-daemon"

HASH = "nvidia.com/last-applied-hash"

DRIVER_ROOT = "/run/nvidia/driver"
INSTALL_VOLUME = "driver-install-dir"
CONFIG_MANAGER = "config-manager"

_SETTINGS = "lab.berth/settings"
_CONFIG_INIT = "config-manager-init"
_CONFIG_FOLDER = "/available-configs"
_GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Operand:
    """A DaemonSet of the operator; `operands.yaml` says what the fields mean."""

    name: str
    part: str
    deployed: str
    container: str
    waits: tuple[str, ...] = ("toolkit-validation",)
    step: str = ""
    gpus: bool = True
    optional: bool = True
    default: bool = True
    shares: bool = False
    selects: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """The operator's name of the step that makes the DaemonSet."""
        return self.step or f"state-{self.deployed}"

    def on(self, policy: OperatorPolicy) -> bool:
        """Whether the ClusterPolicy turns it on."""
        return not self.optional or policy.enabled(self.part, default=self.default)


OPERANDS = tuple(Operand(**entry) for entry in load_file(Path(__file__).with_name("operands.yaml")))
"""DaemonSets of the operator, in its order."""


def daemonset(
    operand: Operand, policy: OperatorPolicy, owner: Object, namespace: str, system: str
) -> Object:
    """Return a DaemonSet as the operator makes it.

    Args:
        operand: the operand.
        policy: settings of the ClusterPolicy.
        owner: the ClusterPolicy itself; the DaemonSet goes with it.
        namespace: the operator's.
        system: name and version of the nodes' operating system, for the driver's image.
    """
    labels = {**policy.part("daemonsets", "labels"), "app": operand.name, **operand.labels}
    annotations = dict(policy.part("daemonsets", "annotations"))
    settings = {path: policy.text(*path.split(".")) for path in operand.settings}
    metadata = {"labels": labels, "annotations": {**annotations, _SETTINGS: _digest(settings)}}
    spec = {
        "selector": {"matchLabels": {"app": operand.name, **operand.selector}},
        "updateStrategy": _update_strategy(operand, policy),
        "template": {"metadata": metadata, "spec": _pod(operand, policy, system)},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": operand.name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {**annotations, HASH: _digest([labels, annotations, spec])},
            "ownerReferences": [_owned_by(owner)],
        },
        "spec": spec,
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _owned_by(owner: Object) -> Object:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    return reference | {"controller": True, "blockOwnerDeletion": True}


def runtime_class(name: str, owner: Object) -> Object:
    """Return a RuntimeClass as the operator makes it."""
    labels = {"app.kubernetes.io/component": "gpu-operator"}
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [_owned_by(owner)]},
        "handler": name,
    }


def _update_strategy(operand: Operand, policy: OperatorPolicy) -> Object:
    if operand.name == DRIVER or policy.text("daemonsets", "updateStrategy") == "OnDelete":
        return {"type": "OnDelete"}
    amount = policy.text("daemonsets", "rollingUpdate", "maxUnavailable", default="1")
    unavailable = amount if amount.endswith("%") else int(amount)
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 0},
    }


def _pod(operand: Operand, policy: OperatorPolicy, system: str) -> Object:
    own = _image(policy.part(operand.part))
    strategy = policy.text("mig", "strategy")
    variables = {"MIG_STRATEGY": strategy} if operand.shares and strategy else {}
    if operand.name != _MPS_DAEMON:
        variables |= _given(policy.part(operand.part))
    if operand.name == DRIVER:
        own += f"-{system}"
    init = [
        _container(name, *_check(name, policy, own))
        for name in operand.waits
        if name != "plugin-validation" or policy.enabled("devicePlugin")
    ]
    containers = [_container(operand.container, own, variables)]
    volumes: list[Object] = []
    if operand.name in {TOOLKIT, VALIDATOR, PLUGIN, MIG_MANAGER}:
        root = policy.text("hostPaths", "driverInstallDir", default=DRIVER_ROOT)
        volumes.append({"name": INSTALL_VOLUME, "hostPath": {"path": root}})
    spec: Object = {
        "nodeSelector": {DEPLOY + operand.deployed: "true", **operand.selects},
        "tolerations": list(policy.part("daemonsets").get("tolerations") or [_GPU_TAINT]),
        "priorityClassName": policy.text(
            "daemonsets", "priorityClassName", default="system-node-critical"
        ),
        "initContainers": init,
        "containers": containers,
        "volumes": volumes,
    }
    if operand.gpus:
        spec["runtimeClassName"] = policy.runtime_class
    if operand.shares and (config_map := policy.text("devicePlugin", "config", "name")):
        default = {"DEFAULT_CONFIG": policy.text("devicePlugin", "config", "default")}
        init.append(_container(_CONFIG_INIT, _image(policy.part("devicePlugin")), default))
        containers.append(_container(CONFIG_MANAGER, _image(policy.part("devicePlugin")), default))
        volumes += [
            {"name": config_map, "configMap": {"name": config_map}},
            {"name": "config", "emptyDir": {}},
        ]
        mounts = [
            {"name": "config", "mountPath": "/config"},
            {"name": config_map, "mountPath": _CONFIG_FOLDER},
        ]
        for container in (containers[0], init[-1], containers[-1]):
            container["volumeMounts"] = mounts
        if operand.name != _MPS_DAEMON:
            spec["shareProcessNamespace"] = True
    return spec


def _check(name: str, policy: OperatorPolicy, own: str) -> tuple[str, dict[str, str]]:
    """Return image and variables of an init container, whose pod has an image of its own."""
    component, _, kind = name.partition("-")
    if name == "k8s-driver-manager":
        return _image(policy.part("driver", "manager")), {}
    if kind != "validation":
        return own, {}
    workload = {"WITH_WORKLOAD": "false", "MIG_STRATEGY": policy.text("mig", "strategy")}
    given = _given(policy.part("validator", component))
    return _image(policy.part("validator")), {
        **(workload if component == "plugin" else {}),
        **given,
    }


def _image(part: Mapping[str, Any]) -> str:
    """Return an image's name; its defaults are in the operator's environment, unknown here."""
    path = "/".join(str(part[key]) for key in ("repository", "image") if part.get(key)) or "unknown"
    return f"{path}:{part['version']}" if part.get("version") else path


def _container(name: str, image: str, variables: Mapping[str, str]) -> Object:
    env = [{"name": key, "value": value} for key, value in variables.items()]
    return {"name": name, "image": image, "env": env}


def _given(part: Mapping[str, Any]) -> dict[str, str]:
    """Return variables that a section of the ClusterPolicy sets."""
    return {entry["name"]: str(entry.get("value") or "") for entry in part.get("env") or []}
