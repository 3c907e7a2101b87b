"""The GPU Operator's DaemonSets as pure functions of the ClusterPolicy, and who owns which label of a node.

Left out of the DaemonSets: commands, service accounts, host paths but the driver's, and variables that bear on no setting.

Answers to (recorded): GPU Operator v26.7.0, ../shared/upstream/gpu-operator/recordings (names, selectors, tolerations, priority and
    runtime class, update strategy, containers and the variables that bear on config; H1: which setting changes which DaemonSet)
Answers to (read): https://github.com/NVIDIA/gpu-operator/tree/v26.7.0/assets and controllers/object_controls.go
Answers to (read): https://github.com/kubernetes-sigs/node-feature-discovery/blob/v0.19.0/pkg/nfd-master/nfd-master.go
    (the annotation that lists the labels which node feature discovery gave a node)
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from berth.lab.devices.gpu_operator import DEPLOY, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]

DRIVER, TOOLKIT = "nvidia-driver-daemonset", "nvidia-container-toolkit-daemonset"
VALIDATOR, PLUGIN = "nvidia-operator-validator", "nvidia-device-plugin-daemonset"
MPS_DAEMON, DISCOVERY = "nvidia-device-plugin-mps-control-daemon", "gpu-feature-discovery"
MIG_MANAGER, DCGM, EXPORTER = "nvidia-mig-manager", "nvidia-dcgm", "nvidia-dcgm-exporter"
STATUS_EXPORTER = "nvidia-node-status-exporter"

HASH = "nvidia.com/last-applied-hash"
OWNED = "nfd.node.kubernetes.io/feature-labels"
"""Annotation in which node feature discovery lists the labels that it gave a node."""

DRIVER_ROOT, INSTALL_VOLUME = "/run/nvidia/driver", "driver-install-dir"
TOOLKIT_ROOT = "/usr/local/nvidia"
CONFIG_MANAGER, CONFIG_INIT = "config-manager", "config-manager-init"

_CONFIG_FOLDER, _CONFIG_FILE = "/available-configs", "/config/config.yaml"
_GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_PART_OF = "app.kubernetes.io/part-of"
_WAITS = ("toolkit-validation",)


@dataclass(frozen=True)
class Operand:
    """A DaemonSet of the operator's.

    Attributes:
        name: of the DaemonSet.
        state: the operator's name of the step that makes it.
        part: the component's section of the ClusterPolicy.
        deployed: end of the label `nvidia.com/gpu.deploy.…` that selects its nodes.
        container: the main container.
        waits: init containers that wait for the driver, or for the toolkit.
        uses_gpus: whether its pods have the runtime class of GPUs.
        optional: whether a ClusterPolicy can turn it off.
        default: whether it is on where the ClusterPolicy says nothing.
        sharing: process that the config-manager beside it signals; empty without one.
        selects: further labels of its nodes.
        labels: further labels of its pods.
        selector: further labels of its selector.
    """

    name: str
    state: str
    part: str
    deployed: str
    container: str
    waits: tuple[str, ...] = _WAITS
    uses_gpus: bool = True
    optional: bool = True
    default: bool = True
    sharing: str = ""
    selects: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)

    def on(self, policy: Policy) -> bool:
        """Whether the ClusterPolicy wants it."""
        return not self.optional or policy.enabled(self.part, default=self.default)


_GFD_PART, _VALIDATOR_PART = {_PART_OF: "nvidia-gpu"}, {_PART_OF: "gpu-operator"}
_DRIVER_LABELS = {"app.kubernetes.io/component": "nvidia-driver", "nvidia.com/precompiled": "false"}

OPERANDS = (
    Operand(
        DRIVER,
        "state-driver",
        "driver",
        "driver",
        "nvidia-driver-ctr",
        ("k8s-driver-manager",),
        uses_gpus=False,
        labels=_DRIVER_LABELS,
    ),
    Operand(
        TOOLKIT,
        "state-container-toolkit",
        "toolkit",
        "container-toolkit",
        "nvidia-container-toolkit-ctr",
        ("driver-validation",),
        uses_gpus=False,
    ),
    Operand(
        VALIDATOR,
        "state-operator-validation",
        "validator",
        "operator-validator",
        "nvidia-operator-validator",
        ("driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation"),
        optional=False,
        labels=_VALIDATOR_PART,
        selector=_VALIDATOR_PART,
    ),
    Operand(
        PLUGIN,
        "state-device-plugin",
        "devicePlugin",
        "device-plugin",
        "nvidia-device-plugin",
        sharing="nvidia-device-plugin",
    ),
    Operand(
        MPS_DAEMON,
        "state-mps-control-daemon",
        "devicePlugin",
        "device-plugin",
        "mps-control-daemon-ctr",
        ("toolkit-validation", "mps-control-daemon-mounts"),
        sharing="/usr/bin/mps-control-daemon",
        selects={"nvidia.com/mps.capable": "true"},
    ),
    Operand(DCGM, "state-dcgm", "dcgm", "dcgm", "nvidia-dcgm-ctr"),
    Operand(EXPORTER, "state-dcgm-exporter", "dcgmExporter", "dcgm-exporter", "nvidia-dcgm-exporter"),
    Operand(
        DISCOVERY,
        "gpu-feature-discovery",
        "gfd",
        "gpu-feature-discovery",
        "gpu-feature-discovery",
        sharing="gpu-feature-discovery",
        labels=_GFD_PART,
        selector=_GFD_PART,
    ),
    Operand(MIG_MANAGER, "state-mig-manager", "migManager", "mig-manager", "nvidia-mig-manager"),
    Operand(
        STATUS_EXPORTER,
        "state-node-status-exporter",
        "nodeStatusExporter",
        "node-status-exporter",
        "nvidia-node-status-exporter",
        (),
        uses_gpus=False,
        default=False,
    ),
)


def daemonset(operand: Operand, policy: Policy, owner: Mapping[str, Any], namespace: str, system: str) -> Object:
    """One DaemonSet as the operator makes it.

    Args:
        operand: which one.
        policy: the ClusterPolicy's settings.
        owner: the ClusterPolicy itself: with it goes the DaemonSet.
        namespace: the operator's.
        system: name and version of the nodes' operating system, for the driver's image.
    """
    common = policy.part("daemonsets")
    own = {"app": operand.name, **operand.labels}
    labels = {**(common.get("labels") or {}), **own}
    annotations = dict(common.get("annotations") or {})
    spec = {
        "selector": {"matchLabels": {"app": operand.name, **operand.selector}},
        "updateStrategy": _update_strategy(operand, common),
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
            "ownerReferences": [owned_by(owner)],
        },
        "spec": spec,
    }


def owned_by(owner: Mapping[str, Any]) -> Object:
    """An owner reference to the ClusterPolicy."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def runtime_class(name: str, owner: Mapping[str, Any]) -> Object:
    """A RuntimeClass as the operator makes it."""
    labels = {"app.kubernetes.io/component": "gpu-operator"}
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owned_by(owner)]},
        "handler": name,
    }


def _update_strategy(operand: Operand, common: Mapping[str, Any]) -> Object:
    if operand.name == DRIVER or common.get("updateStrategy") == "OnDelete":
        return {"type": "OnDelete"}
    amount = str((common.get("rollingUpdate") or {}).get("maxUnavailable") or "1")
    unavailable = amount if amount.endswith("%") else int(amount)
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 0}}


def _pod(operand: Operand, policy: Policy, system: str) -> Object:
    common = policy.part("daemonsets")
    init, containers = _containers(operand, policy, system)
    volumes: list[Object] = []
    root = str(policy.part("hostPaths").get("driverInstallDir") or DRIVER_ROOT)
    if operand.name in {TOOLKIT, VALIDATOR, PLUGIN, MIG_MANAGER}:
        volumes.append({"name": INSTALL_VOLUME, "hostPath": {"path": root}})
    spec: Object = {
        "nodeSelector": {DEPLOY + operand.deployed: "true", **operand.selects},
        "tolerations": list(common.get("tolerations") or [_GPU_TAINT]),
        "priorityClassName": common.get("priorityClassName") or "system-node-critical",
        "initContainers": init,
        "containers": containers,
    }
    if operand.uses_gpus and not policy.nri:
        spec["runtimeClassName"] = policy.runtime_class
    if operand.sharing and policy.config_map:
        name = policy.config_map
        volumes += [{"name": name, "configMap": {"name": name}}, {"name": "config", "emptyDir": {}}]
        mounts = [{"name": "config", "mountPath": "/config"}, {"name": name, "mountPath": _CONFIG_FOLDER}]
        for container in [*init, *containers]:
            if container["name"] in {CONFIG_INIT, CONFIG_MANAGER, operand.container}:
                container["volumeMounts"] = mounts
        if operand.name != MPS_DAEMON:
            spec["shareProcessNamespace"] = True
    return spec | {"volumes": volumes}


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
            image = _image(policy.part("driver").get("manager") or {})
        init.append(_container(name, image, _validation(name, policy)))
    containers = [_container(operand.container, own, _variables(operand, policy))]
    if operand.sharing and policy.config_map:
        plugin = _image(policy.part("devicePlugin"))
        init.append(_container(CONFIG_INIT, plugin, _config_manager(policy)))
        containers.append(_container(CONFIG_MANAGER, plugin, _config_manager(policy, operand.sharing)))
    return init, containers


def _image(part: Mapping[str, Any]) -> str:
    """An image's name; the operator takes parts that are missing from its own environment, which the lab does not know."""
    path = "/".join(str(part[key]) for key in ("repository", "image") if part.get(key)) or "unknown"
    return f"{path}:{part['version']}" if part.get("version") else path


def _container(name: str, image: str, variables: Mapping[str, str]) -> Object:
    env = [{"name": key, "value": value} for key, value in variables.items()]
    return {"name": name, "image": image, "env": env}


def _given(part: Mapping[str, Any]) -> dict[str, str]:
    """Variables that a section of the ClusterPolicy gives."""
    return {each["name"]: str(each.get("value") or "") for each in part.get("env") or []}


def _validation(name: str, policy: Policy) -> dict[str, str]:
    component, _, kind = name.partition("-")
    if kind != "validation":
        return {}
    own = _given(policy.part("validator").get(component) or {})
    root = str(policy.part("hostPaths").get("driverInstallDir") or DRIVER_ROOT)
    if component == "driver":
        moved = {} if root == DRIVER_ROOT else {"DRIVER_INSTALL_DIR": root, "DRIVER_INSTALL_DIR_CTR_PATH": root}
        return {"WITH_WAIT": "true", "COMPONENT": "driver"} | moved | own
    if component == "plugin":
        workload = {"COMPONENT": "plugin", "WITH_WAIT": "false", "WITH_WORKLOAD": "false"}
        return workload | {"MIG_STRATEGY": policy.mig_strategy} | own
    return own


def _config_manager(policy: Policy, process: str = "") -> dict[str, str]:
    return {
        "ONESHOT": "false" if process else "true",
        "NODE_LABEL": "nvidia.com/device-plugin.config",
        "CONFIG_FILE_SRCDIR": _CONFIG_FOLDER,
        "CONFIG_FILE_DST": _CONFIG_FILE,
        "DEFAULT_CONFIG": policy.default_config,
        "SEND_SIGNAL": "true" if process else "false",
        "SIGNAL": "1" if process else "",
        "PROCESS_TO_SIGNAL": process,
        "FALLBACK_STRATEGIES": "empty",
    }


def _mig(policy: Policy) -> dict[str, str]:
    strategy = policy.mig_strategy
    found = {"MIG_STRATEGY": strategy} if strategy else {}
    return found | ({} if strategy == "none" else {"NVIDIA_MIG_MONITOR_DEVICES": "all"})


def _hook(policy: Policy) -> dict[str, str]:
    folder = policy.part("toolkit").get("installDir") or TOOLKIT_ROOT
    return {"NVIDIA_CDI_HOOK_PATH": f"{folder}/toolkit/nvidia-cdi-hook"} if policy.enabled("toolkit") else {}


def _variables(operand: Operand, policy: Policy) -> dict[str, str]:
    """Variables of a main container that bear on config."""
    cdi = policy.enabled("cdi")
    file = {"CONFIG_FILE": _CONFIG_FILE} if operand.sharing and policy.config_map else {}
    found: dict[str, str] = {}
    if operand.name == TOOLKIT:
        found["ROOT"] = str(policy.part("toolkit").get("installDir") or TOOLKIT_ROOT)
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
        found["MPS_ROOT"] = str((policy.part("devicePlugin").get("mps") or {}).get("root") or found["MPS_ROOT"])
    elif operand.name == MPS_DAEMON:
        return file | _mig(policy)
    elif operand.name == DISCOVERY:
        return {"GFD_SLEEP_INTERVAL": "60s"} | _given(policy.part("gfd")) | file | _mig(policy)
    elif operand.name == MIG_MANAGER:
        custom = (policy.part("migManager").get("config") or {}).get("name")
        key = "CONFIG_FILE" if custom else "DEFAULT_CONFIG_FILE"
        found[key] = "/mig-parted-config/config.yaml" if custom else "/mig-parted-config/config-default.yaml"
        found |= ({"CDI_ENABLED": "true"} | _hook(policy)) if cdi else {}
    elif operand.name == EXPORTER and policy.enabled("dcgm"):
        found["DCGM_REMOTE_HOSTENGINE_INFO"] = "nvidia-dcgm:5555"
    return found | _given(policy.part(operand.part))


def label_change(metadata: Mapping[str, Any], wanted: Mapping[str, str]) -> Object:
    """A patch of a node's metadata that gives it these labels of feature discovery and takes away earlier ones.

    A label that somebody else gave the node with the same value stays theirs.
    """
    now: Mapping[str, str] = metadata.get("labels") or {}
    listed = str((metadata.get("annotations") or {}).get(OWNED) or "")
    owned = {name for name in listed.split(",") if name}
    labels: dict[str, str | None] = {name: None for name in owned if name not in wanted and name in now}
    labels |= {name: value for name, value in wanted.items() if now.get(name) != value}
    keeps = ",".join(sorted(name for name in wanted if name in owned or name in labels))
    change: Object = {"labels": labels} if labels else {}
    if keeps != listed:
        change["annotations"] = {OWNED: keeps or None}
    return change
