"""Programs of the GPU Operator on a node: plugin, feature discovery, validator, toolkit. Pure.

The rules read the node and the pods on it, as the programs in the pods do: a setting of the
ClusterPolicy counts when it has reached a pod.

Left out: memory and engines of a MIG instance among its labels, MIG profiles with media extensions,
the MIG manager's pause of GPU clients and its reboots, CUDA validation, the versions of a driver
that GKE installed.

Answers to (read): https://github.com/NVIDIA/k8s-device-plugin/tree/v0.20.0 (internal/lm: labels;
    internal/rm and internal/plugin: devices and what it refuses)
Answers to (read): https://github.com/NVIDIA/gpu-operator/tree/v26.7.0/assets and
    cmd/nvidia-validator/main.go (which init container waits for what)
Answers to (read): https://github.com/containerd/containerd/blob/main/internal/cri/config/config.go
    and https://github.com/NVIDIA/k8s-device-plugin/issues/479 (a pod whose runtime class has no
    handler gets no sandbox; so it is where toolkit.enabled=false)
Answers to (read):
    https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html (Google's
    driver on COS: its folder, and no driver of the operator's there)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.cluster.api import Object
from berth.components.hardware.facts import mig_slices
from berth.components.hardware.names import GPU_RESOURCE
from berth.lab.devices.gpus import DRIVER, Labels, gpu_count, gpu_of, on_cos, preinstalled
from berth.lab.devices.kubelet import CRASHES, CREATES, PULLS, Hold, variable
from berth.lab.devices.operand_objects import DRIVER as DRIVER_POD
from berth.lab.devices.operand_objects import DRIVER_ROOT, INSTALL_VOLUME, TOOLKIT, TOOLKIT_ROOT, VALIDATOR
from berth.lab.devices.plugin_config import MPS, NONE, PluginConfig

Pods = Mapping[str, Object]
"""Pods of operands on a node, by the names of their DaemonSets."""

_STRATEGIES = ("none", "single", "mixed")

# Folder of Google's driver on Container-Optimized OS, whose own file system is read-only.
_COS_DRIVER = "/home/kubernetes/bin/nvidia"
_COS_WRITABLE = "/home/kubernetes/bin"
_LABEL_LENGTH = 63


def driver_version(pods: Pods) -> str:
    """Return the version of the driver that the operator has installed; empty without one."""
    if DRIVER_POD not in pods:
        return ""
    _, _, tag = str(pods[DRIVER_POD]["spec"]["containers"][0]["image"]).rpartition(":")
    return tag.partition("-")[0]


def _driver_folder(pod: Object) -> str:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    return str((volumes.get(INSTALL_VOLUME) or {}).get("hostPath", {}).get("path") or DRIVER_ROOT)


def _driver_problem(labels: Labels, pods: Pods, *, installer: bool) -> str:
    """Return why the validation of the driver never ends; empty where it finds a driver."""
    if not gpu_count(labels):
        return "no NVIDIA driver: the machine has no GPU"
    googles = DRIVER in labels or installer
    if not preinstalled(labels) and not googles:
        if DRIVER_POD not in pods:
            return (
                "no NVIDIA driver: GKE installs none on this node, and neither Google's nvidia-driver-installer nor "
                "the GPU Operator's driver runs on it (driver.enabled)"
            )
        if on_cos(labels):
            return "no NVIDIA driver: the operator has no driver image for Container-Optimized OS (driver.enabled=true)"
    wrong = sorted({_driver_folder(pods[name]) for name in (TOOLKIT, VALIDATOR) if name in pods} - {_COS_DRIVER})
    if on_cos(labels) and googles and wrong:
        return f"no NVIDIA driver in {wrong[0]}: Google's is in {_COS_DRIVER} (hostPaths.driverInstallDir)"
    return ""


def blocked(labels: Labels, pods: Pods, *, installer: bool) -> dict[str, Hold]:
    """Return holds on pods that wait for driver, container toolkit or validator, by DaemonSet.

    The driver may come from a driver installer of Google's that runs on the node.
    """
    holds: dict[str, Hold] = {}
    if DRIVER_POD in pods and on_cos(labels):
        image = pods[DRIVER_POD]["spec"]["containers"][0]["image"]
        holds[DRIVER_POD] = Hold("nvidia-driver-ctr", PULLS, f"no such image: {image}")
    problem = "no container toolkit on the node"
    if TOOLKIT in pods:
        problem = _driver_problem(labels, pods, installer=installer)
        folder = variable(pods[TOOLKIT], "ROOT") or TOOLKIT_ROOT
        if problem:
            holds[TOOLKIT] = Hold("driver-validation", "", problem)
        elif on_cos(labels) and not folder.startswith(_COS_WRITABLE):
            problem = (
                f"the container toolkit cannot be installed in {folder}: it is read-only on COS (toolkit.installDir)"
            )
            holds[TOOLKIT] = Hold("nvidia-container-toolkit-ctr", CRASHES, problem)
    for name, pod in pods.items():
        if name in holds:
            continue
        handler = pod["spec"].get("runtimeClassName")
        waits = [container["name"] for container in pod["spec"].get("initContainers") or []]
        if problem and handler:
            message = (
                f'Failed to create pod sandbox: failed to get sandbox runtime: no runtime for "{handler}" is configured'
            )
            holds[name] = Hold("", CREATES, f"{message}: {problem}")
        elif "toolkit-validation" in waits and (problem or VALIDATOR not in pods):
            # The validator writes the file that the other pods wait for.
            holds[name] = Hold("toolkit-validation", "", problem or "the operator's validator does not run on the node")
    return holds


def validation(resources: Mapping[str, Any], pod: Object) -> Hold | None:
    """Return a hold on the validator's pod while the node's resources have no GPUs."""
    waits = {container["name"] for container in pod["spec"].get("initContainers") or []}
    shown = any(
        name.startswith((GPU_RESOURCE, "nvidia.com/mig-")) and str(count) != "0" for name, count in resources.items()
    )
    if "plugin-validation" not in waits or shown:
        return None
    return Hold("plugin-validation", "", "GPU resources are not discovered by the node")


@dataclass(frozen=True)
class Served:
    """Devices that the device plugin registers on a node."""

    resources: Mapping[str, int]
    single: frozenset[str] = frozenset()  # resources of which the plugin gives a container one device at most
    problem: str = ""  # why the plugin ended; empty where it runs


def serve(labels: Labels, strategy: str, config: PluginConfig, mig: Mapping[str, int], *, mps: bool = True) -> Served:
    """Return the devices that the device plugin registers on a node that has a driver.

    Args:
        labels: the node's.
        strategy: MIG strategy of the pod; empty where the configuration has it.
        config: configuration that the plugin has read.
        mig: MIG instances of each GPU, by profile.
        mps: whether the MPS control daemon runs on the node.
    """
    strategy = strategy or config.mig_strategy or "none"
    problem = _refused(strategy, config, mig)
    if not problem and config.strategy == MPS and not mps:
        problem = "error checking MPS daemon health: the MPS control daemon does not run on the node"
    if problem:
        return Served({}, problem=problem)
    count = gpu_count(labels)
    plain = {GPU_RESOURCE: count}
    if mig and strategy != "none":
        plain = {name: mig[profile] * count for profile, name in _names(mig, strategy).items()}
    resources, single = {}, set()
    for resource, number in plain.items():
        replicas = config.replicas.get(resource, 1)
        advertised = f"{resource}.shared" if replicas > 1 and config.renamed else resource
        resources[advertised] = number * replicas
        if replicas > 1 and config.single:
            single.add(advertised)
    return Served(resources, frozenset(single))


def _refused(strategy: str, config: PluginConfig, mig: Mapping[str, int]) -> str:
    if strategy not in _STRATEGIES:
        return f"unknown MIG strategy: {strategy}"
    if config.strategy == MPS:
        if strategy == "mixed":
            return "using --mig-strategy=mixed is not supported with MPS"
        if mig and strategy != "none":
            return "sharing using MPS is not supported for MIG devices"
    if strategy == "single" and len(mig) > 1:
        return "invalid MIG configuration for --mig-strategy=single: more than one MIG device type present on node"
    return ""


def _names(mig: Mapping[str, int], strategy: str) -> dict[str, str]:
    """Names of the resources of MIG instances, by profile."""
    return {profile: GPU_RESOURCE if strategy == "single" else f"nvidia.com/mig-{profile}" for profile in mig}


def features(
    labels: Labels, strategy: str, config: PluginConfig, mig: Mapping[str, int], driver: str = ""
) -> dict[str, str]:
    """Return labels of GPU feature discovery for a node with a driver; arguments as of `serve`."""
    strategy = strategy or config.mig_strategy or "none"
    gpu, count = gpu_of(labels), gpu_count(labels)
    if not count:
        return {}
    product = "-".join(gpu.driver_name.split()) if gpu else ""
    shown = {
        f"{GPU_RESOURCE}.machine": "Google-Compute-Engine",
        f"{GPU_RESOURCE}.mode": "compute",
        "nvidia.com/mig.capable": _text(value=bool(gpu and gpu.mig)),
        "nvidia.com/mps.capable": _text(value=config.strategy == MPS),
    }
    if strategy != "none":
        shown["nvidia.com/mig.strategy"] = strategy
    if driver:
        version = "nvidia.com/cuda.driver-version"
        parts = zip(("major", "minor", "revision"), driver.split("."), strict=False)
        shown |= {f"{version}.full": driver} | {f"{version}.{name}": part for name, part in parts}
    if mig and strategy == "single" and len(mig) > 1:
        # The strategy `single` cannot show several profiles.
        none = {
            f"{GPU_RESOURCE}.count": "0",
            f"{GPU_RESOURCE}.replicas": "0",
            f"{GPU_RESOURCE}.memory": "0",
            f"{GPU_RESOURCE}.sharing-strategy": "",
        }
        return shown | none | ({f"{GPU_RESOURCE}.product": f"{product}-MIG-INVALID"} if product else {})
    if gpu is not None:
        shown |= {
            f"{GPU_RESOURCE}.memory": str(gpu.driver_memory_mib),
            f"{GPU_RESOURCE}.family": "-".join(gpu.architecture.lower().split()),
        }
        shown |= {
            f"{GPU_RESOURCE}.compute.{part}": str(number)
            for part, number in zip(("major", "minor"), gpu.compute, strict=True)
        }
    shown |= _resource(config, GPU_RESOURCE, count, product, shareable=not mig)
    for profile, name in _names(mig, strategy).items() if strategy != "none" else ():
        if name == GPU_RESOURCE:
            # One of an instance would stand here; the whole GPU's would be wrong.
            del shown[f"{GPU_RESOURCE}.memory"]
        shown |= _resource(config, name, mig[profile] * count, f"{product}-MIG-{profile}")
        shown |= {f"{name}.slices.{part}": str(mig_slices(profile)) for part in ("gi", "ci")}
    return shown


def _resource(config: PluginConfig, name: str, count: int, product: str, *, shareable: bool = True) -> dict[str, str]:
    """Labels of one resource; GPUs that are cut are not shareable."""
    replicas = config.replicas.get(name, 1) if shareable else 0
    shared = replicas > 1
    suffix = "-SHARED" if shared and not config.renamed else ""
    shown = {
        f"{name}.count": str(count),
        f"{name}.replicas": str(replicas),
        f"{name}.sharing-strategy": config.strategy if shared else NONE,
    }
    return shown | ({f"{name}.product": (product + suffix)[:_LABEL_LENGTH]} if product else {})


def _text(*, value: bool) -> str:
    return "true" if value else "false"
