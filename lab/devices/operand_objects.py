"""DaemonSets and runtime classes of the GPU Operator, as functions of the ClusterPolicy. Pure.

Left out of the DaemonSets: commands, service accounts, host paths but the driver's, and variables
that bear on no setting.

Answers to (recorded): GPU Operator v26.7.0, ../shared/upstream/gpu-operator/recordings (names,
    selectors, tolerations, priority and runtime class, update strategy, containers and the
    variables that bear on config; H1: which setting changes which DaemonSet)
Answers to (read): https://github.com/NVIDIA/gpu-operator/tree/v26.7.0/assets and
    controllers/object_controls.go
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.components.cluster.api import Object
from berth.components.hardware.names import CONFIG_LABEL
from berth.lab.devices.gpu_operator import DEPLOY, Policy

DRIVER, TOOLKIT = "nvidia-driver-daemonset", "nvidia-container-toolkit-daemonset"
VALIDATOR, PLUGIN = "nvidia-operator-validator", "nvidia-device-plugin-daemonset"
MPS_DAEMON, DISCOVERY = "nvidia-device-plugin-mps-control-daemon", "gpu-feature-discovery"
MIG_MANAGER, _DCGM, _EXPORTER = "nvidia-mig-manager", "nvidia-dcgm", "nvidia-dcgm-exporter"
_STATUS_EXPORTER = "nvidia-node-status-exporter"

HASH = "nvidia.com/last-applied-hash"

DRIVER_ROOT, INSTALL_VOLUME = "/run/nvidia/driver", "driver-install-dir"
TOOLKIT_ROOT = "/usr/local/nvidia"
CONFIG_MANAGER, CONFIG_INIT = "config-manager", "config-manager-init"

_CONFIG_FOLDER, _CONFIG_FILE = "/available-configs", "/config/config.yaml"
_GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_PART_OF = "app.kubernetes.io/part-of"


@dataclass(frozen=True)
class Operand:
    """A DaemonSet of the operator."""

    name: str
    part: str  # section of the ClusterPolicy
    deployed: str  # end of the label `nvidia.com/gpu.deploy.…` that selects its nodes
    container: str
    waits: tuple[str, ...] = ("toolkit-validation",)  # init containers that wait for the driver, or the toolkit
    state: str = ""  # the operator's name of the step that makes it; empty for `state-` and `deployed`
    uses_gpus: bool = True  # whether its pods have the runtime class of GPUs
    optional: bool = True  # whether a ClusterPolicy can turn it off
    default: bool = True  # whether it is on where the ClusterPolicy does not say
    sharing: str = ""  # process that the config-manager beside it signals; empty without one
    selects: Mapping[str, str] = field(default_factory=dict)  # further labels of its nodes
    labels: Mapping[str, str] = field(default_factory=dict)  # further labels of its pods
    selector: Mapping[str, str] = field(default_factory=dict)  # further labels of its selector

    @property
    def step(self) -> str:
        """The operator's name of the step that makes the DaemonSet."""
        return self.state or f"state-{self.deployed}"

    def on(self, policy: Policy) -> bool:
        """Whether the ClusterPolicy turns it on."""
        return not self.optional or policy.enabled(self.part, default=self.default)


_CHECKS = ("driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation")
_MPS_WAITS = ("toolkit-validation", "mps-control-daemon-mounts")
_DRIVER_WAITS, _TOOLKIT_WAITS = ("k8s-driver-manager",), ("driver-validation",)
_OF_DRIVER: Object = {"labels": {"app.kubernetes.io/component": "nvidia-driver", "nvidia.com/precompiled": "false"}}
_OF_MPS: Object = {
    "state": "state-mps-control-daemon",
    "sharing": "/usr/bin/mps-control-daemon",
    "selects": {"nvidia.com/mps.capable": "true"},
}
_OPERATOR, _GPUS = {_PART_OF: "gpu-operator"}, {_PART_OF: "nvidia-gpu"}
_OF_DISCOVERY: Object = {"state": DISCOVERY, "labels": _GPUS, "selector": _GPUS}
_OF_VALIDATOR: Object = {
    "state": "state-operator-validation",
    "optional": False,
    "labels": _OPERATOR,
    "selector": _OPERATOR,
}
_OF_STATUS: Object = {"uses_gpus": False, "default": False}

OPERANDS = (
    Operand(DRIVER, "driver", "driver", "nvidia-driver-ctr", _DRIVER_WAITS, uses_gpus=False, **_OF_DRIVER),
    Operand(TOOLKIT, "toolkit", "container-toolkit", "nvidia-container-toolkit-ctr", _TOOLKIT_WAITS, uses_gpus=False),
    Operand(VALIDATOR, "validator", "operator-validator", VALIDATOR, _CHECKS, **_OF_VALIDATOR),
    Operand(PLUGIN, "devicePlugin", "device-plugin", "nvidia-device-plugin", sharing="nvidia-device-plugin"),
    Operand(MPS_DAEMON, "devicePlugin", "device-plugin", "mps-control-daemon-ctr", _MPS_WAITS, **_OF_MPS),
    Operand(_DCGM, "dcgm", "dcgm", "nvidia-dcgm-ctr"),
    Operand(_EXPORTER, "dcgmExporter", "dcgm-exporter", _EXPORTER),
    Operand(DISCOVERY, "gfd", DISCOVERY, DISCOVERY, sharing=DISCOVERY, **_OF_DISCOVERY),
    Operand(MIG_MANAGER, "migManager", "mig-manager", MIG_MANAGER),
    Operand(_STATUS_EXPORTER, "nodeStatusExporter", "node-status-exporter", _STATUS_EXPORTER, (), **_OF_STATUS),
)
"""DaemonSets of the operator, in its order."""


def daemonset(operand: Operand, policy: Policy, owner: Object, namespace: str, system: str) -> Object:
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
    spec = {
        "selector": {"matchLabels": {"app": operand.name, **operand.selector}},
        "updateStrategy": _update_strategy(operand, policy),
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": _pod(operand, policy, system)},
    }
    digest = hashlib.sha256(json.dumps([labels, annotations, spec], sort_keys=True).encode()).hexdigest()[:16]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": operand.name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {**annotations, HASH: digest},
            "ownerReferences": [_owned_by(owner)],
        },
        "spec": spec,
    }


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


def _update_strategy(operand: Operand, policy: Policy) -> Object:
    if operand.name == DRIVER or policy.text("daemonsets", "updateStrategy") == "OnDelete":
        return {"type": "OnDelete"}
    amount = policy.text("daemonsets", "rollingUpdate", "maxUnavailable", default="1")
    unavailable = amount if amount.endswith("%") else int(amount)
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 0}}


def _pod(operand: Operand, policy: Policy, system: str) -> Object:
    init, containers = _containers(operand, policy, system)
    volumes: list[Object] = []
    if operand.name in {TOOLKIT, VALIDATOR, PLUGIN, MIG_MANAGER}:
        volumes.append({"name": INSTALL_VOLUME, "hostPath": {"path": _driver_root(policy)}})
    spec: Object = {
        "nodeSelector": {DEPLOY + operand.deployed: "true", **operand.selects},
        "tolerations": list(policy.part("daemonsets").get("tolerations") or [_GPU_TAINT]),
        "priorityClassName": policy.text("daemonsets", "priorityClassName", default="system-node-critical"),
        "initContainers": init,
        "containers": containers,
    }
    if operand.uses_gpus and not policy.nri:
        spec["runtimeClassName"] = policy.runtime_class
    if operand.sharing and (name := _config_map(policy)):
        volumes += [{"name": name, "configMap": {"name": name}}, {"name": "config", "emptyDir": {}}]
        mounts = [{"name": "config", "mountPath": "/config"}, {"name": name, "mountPath": _CONFIG_FOLDER}]
        for container in [*init, *containers]:
            if container["name"] in {CONFIG_INIT, CONFIG_MANAGER, operand.container}:
                container["volumeMounts"] = mounts
        if operand.name != MPS_DAEMON:
            spec["shareProcessNamespace"] = True
    return spec | {"volumes": volumes}


def _driver_root(policy: Policy) -> str:
    return policy.text("hostPaths", "driverInstallDir", default=DRIVER_ROOT)


def _toolkit_root(policy: Policy) -> str:
    return policy.text("toolkit", "installDir", default=TOOLKIT_ROOT)


def _config_map(policy: Policy) -> str:
    return policy.text("devicePlugin", "config", "name")


def _containers(operand: Operand, policy: Policy, system: str) -> tuple[list[Object], list[Object]]:
    """Init containers and containers."""
    validator, own = _image(policy.part("validator")), _image(policy.part(operand.part))
    if operand.name == DRIVER:
        own += f"-{system}"
    init = []
    for name in operand.waits:
        if name == "plugin-validation" and not policy.enabled("devicePlugin"):
            continue
        image = validator if name.endswith("-validation") else own
        if name == "k8s-driver-manager":
            image = _image(policy.part("driver", "manager"))
        init.append(_container(name, image, _validation(name, policy)))
    containers = [_container(operand.container, own, _variables(operand, policy))]
    if operand.sharing and _config_map(policy):
        plugin = _image(policy.part("devicePlugin"))
        init.append(_container(CONFIG_INIT, plugin, _config_manager(policy)))
        containers.append(_container(CONFIG_MANAGER, plugin, _config_manager(policy, operand.sharing)))
    return init, containers


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


def _validation(name: str, policy: Policy) -> dict[str, str]:
    component, _, kind = name.partition("-")
    if kind != "validation":
        return {}
    own, root = _given(policy.part("validator", component)), _driver_root(policy)
    if component == "driver":
        moved = {} if root == DRIVER_ROOT else {"DRIVER_INSTALL_DIR": root, "DRIVER_INSTALL_DIR_CTR_PATH": root}
        return {"WITH_WAIT": "true", "COMPONENT": "driver"} | moved | own
    if component == "plugin":
        workload = {"COMPONENT": "plugin", "WITH_WAIT": "false", "WITH_WORKLOAD": "false"}
        return workload | {"MIG_STRATEGY": policy.text("mig", "strategy")} | own
    return own


def _config_manager(policy: Policy, process: str = "") -> dict[str, str]:
    return {
        "ONESHOT": "false" if process else "true",
        "NODE_LABEL": CONFIG_LABEL,
        "CONFIG_FILE_SRCDIR": _CONFIG_FOLDER,
        "CONFIG_FILE_DST": _CONFIG_FILE,
        "DEFAULT_CONFIG": policy.text("devicePlugin", "config", "default"),
        "SEND_SIGNAL": "true" if process else "false",
        "SIGNAL": "1" if process else "",
        "PROCESS_TO_SIGNAL": process,
        "FALLBACK_STRATEGIES": "empty",
    }


def _mig(policy: Policy) -> dict[str, str]:
    strategy = policy.text("mig", "strategy")
    found = {"MIG_STRATEGY": strategy} if strategy else {}
    return found | ({} if strategy == "none" else {"NVIDIA_MIG_MONITOR_DEVICES": "all"})


def _hook(policy: Policy) -> dict[str, str]:
    path = f"{_toolkit_root(policy)}/toolkit/nvidia-cdi-hook"
    return {"NVIDIA_CDI_HOOK_PATH": path} if policy.enabled("toolkit") else {}


def _variables(operand: Operand, policy: Policy) -> dict[str, str]:
    """Return variables of a main container that bear on configuration."""
    cdi = policy.enabled("cdi")
    file = {"CONFIG_FILE": _CONFIG_FILE} if operand.sharing and _config_map(policy) else {}
    found: dict[str, str] = {}
    if operand.name == TOOLKIT:
        found["ROOT"] = _toolkit_root(policy)
        if cdi:
            found |= {"CDI_ENABLED": "true", "NVIDIA_RUNTIME_SET_AS_DEFAULT": "false"}
            found |= {"NVIDIA_CONTAINER_RUNTIME_MODE": "cdi", "CRIO_CONFIG_MODE": "config"}
        found |= _given(policy.part("toolkit")) | {"RUNTIME": "containerd"}
        return found | ({} if policy.nri else {"CONTAINERD_RUNTIME_CLASS": policy.runtime_class})
    if operand.name == PLUGIN:
        found = {"FAIL_ON_INIT_ERROR": "true", "DEVICE_LIST_STRATEGY": "envvar", "MPS_ROOT": "/run/nvidia/mps"}
        found |= file | _mig(policy)
        if cdi:
            found |= {"CDI_ENABLED": "true", "DEVICE_LIST_STRATEGY": "cdi-annotations,cdi-cri"} | _hook(policy)
        found["MPS_ROOT"] = policy.text("devicePlugin", "mps", "root", default=found["MPS_ROOT"])
    elif operand.name == MPS_DAEMON:
        return file | _mig(policy)
    elif operand.name == DISCOVERY:
        return {"GFD_SLEEP_INTERVAL": "60s"} | _given(policy.part("gfd")) | file | _mig(policy)
    elif operand.name == MIG_MANAGER:
        custom = policy.text("migManager", "config", "name")
        key = "CONFIG_FILE" if custom else "DEFAULT_CONFIG_FILE"
        found[key] = "/mig-parted-config/config.yaml" if custom else "/mig-parted-config/config-default.yaml"
        found |= ({"CDI_ENABLED": "true"} | _hook(policy)) if cdi else {}
    elif operand.name == _EXPORTER and policy.enabled("dcgm"):
        found["DCGM_REMOTE_HOSTENGINE_INFO"] = "nvidia-dcgm:5555"
    return found | _given(policy.part(operand.part))
