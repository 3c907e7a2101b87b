"""Programs of the GPU Operator on a node: plugin, feature discovery, toolkit. Pure.

The rules read the node and the DaemonSets that cover it, as the programs in the pods do: a setting
of the ClusterPolicy counts when it has reached a DaemonSet.

Left out: combinations of sharing and MIG that the plugin refuses and berth's settings too, memory
and engines of a MIG instance among its labels, MIG profiles with media extensions, the MIG
manager's pause of GPU clients and its reboots, CUDA validation, the driver's version.
"""

from collections.abc import Mapping

from berth.components.cluster.api import Object
from berth.components.hardware.names import GPU_RESOURCE
from berth.lab.devices.gpus import DRIVER, Labels, gpu_count, gpu_of, on_cos, preinstalled
from berth.lab.devices.kubelet import Hold
from berth.lab.devices.operand_objects import DRIVER as DRIVER_POD
from berth.lab.devices.operand_objects import DRIVER_ROOT, INSTALL_VOLUME, TOOLKIT, VALIDATOR
from berth.lab.devices.plugin_config import MPS, NONE, PluginConfig

Specs = Mapping[str, Object]
"""Specs of the pods of operands on a node, by the names of their DaemonSets."""

# Folder of Google's driver on Container-Optimized OS, whose own file system is read-only.
_COS_DRIVER = "/home/kubernetes/bin/nvidia"
_LABEL_LENGTH = 63


def strategy_of(spec: Object, config: PluginConfig) -> str:
    """Return the MIG strategy of a program: that of its pod, or of its configuration."""
    variables = {
        entry["name"]: entry.get("value") for entry in spec["containers"][0].get("env") or []
    }
    return str(variables.get("MIG_STRATEGY") or config.mig_strategy or "none")


def _driver_problem(labels: Labels, specs: Specs, *, installer: bool) -> str:
    """Return why the validation of the driver never ends; empty where it finds a driver."""
    if TOOLKIT not in specs:
        return "no container toolkit on the node"
    if not gpu_count(labels):
        return "no NVIDIA driver: the machine has no GPU"
    googles = DRIVER in labels or installer
    if not preinstalled(labels) and not googles:
        if DRIVER_POD not in specs:
            return (
                "no NVIDIA driver: GKE installs none on this node, and neither Google's"
                " nvidia-driver-installer nor the GPU Operator's driver runs on it (driver.enabled)"
            )
        if on_cos(labels):
            return (
                "no NVIDIA driver: the operator has no driver image for Container-Optimized OS"
                " (driver.enabled=true)"
            )
    elsewhere = sorted(_driver_folders(specs) - {_COS_DRIVER})
    if on_cos(labels) and googles and elsewhere:
        return (
            f"no NVIDIA driver in {elsewhere[0]}: Google's is in {_COS_DRIVER}"
            " (hostPaths.driverInstallDir)"
        )
    return ""


def _driver_folders(specs: Specs) -> set[str]:
    """Return the node's folders in which container toolkit and validator look for the driver."""
    folders = set()
    for name in (TOOLKIT, VALIDATOR):
        volumes = specs.get(name, {}).get("volumes") or []
        folders |= {
            volume["hostPath"]["path"] for volume in volumes if volume["name"] == INSTALL_VOLUME
        }
    return folders or {DRIVER_ROOT}


def blocked(labels: Labels, specs: Specs, *, installer: bool) -> dict[str, Hold]:
    """Return holds on pods that wait for driver or container toolkit, by DaemonSet.

    The driver may come from a driver installer of Google's that runs on the node.
    """
    problem = _driver_problem(labels, specs, installer=installer)
    if not problem:
        return {}
    holds = {
        name: Hold(
            "Failed to create pod sandbox: failed to get sandbox runtime: no runtime for "
            f'"{spec["runtimeClassName"]}" is configured: {problem}',
            "FailedCreatePodSandBox",
        )
        for name, spec in specs.items()
        if spec.get("runtimeClassName")
    }
    return holds | ({TOOLKIT: Hold(problem)} if TOOLKIT in specs else {})


def serve(
    labels: Labels, strategy: str, config: PluginConfig, mig: Mapping[str, int]
) -> dict[str, int]:
    """Return the devices that the device plugin registers on a node that has a driver.

    Args:
        labels: the node's.
        strategy: the MIG strategy.
        config: configuration that the plugin has read.
        mig: MIG instances of each GPU, by profile.
    """
    count = gpu_count(labels)
    plain = {GPU_RESOURCE: count}
    if mig and strategy != "none":
        plain = {name: mig[profile] * count for profile, name in _names(mig, strategy).items()}
    resources = {}
    for resource, number in plain.items():
        replicas = config.replicas.get(resource, 1)
        advertised = f"{resource}.shared" if replicas > 1 and config.renamed else resource
        resources[advertised] = number * replicas
    return resources


def _names(mig: Mapping[str, int], strategy: str) -> dict[str, str]:
    """Names of the resources of MIG instances, by profile."""
    return {
        profile: GPU_RESOURCE if strategy == "single" else f"nvidia.com/mig-{profile}"
        for profile in mig
    }


def features(
    labels: Labels, strategy: str, config: PluginConfig, mig: Mapping[str, int]
) -> dict[str, str]:
    """Return labels of GPU feature discovery for a node with a driver; arguments as of `serve`."""
    gpu = gpu_of(labels)
    count = gpu_count(labels)
    if gpu is None or not count:
        return {}
    product = "-".join(gpu.driver_name.split())
    shown = {
        f"{GPU_RESOURCE}.machine": "Google-Compute-Engine",
        f"{GPU_RESOURCE}.mode": "compute",
        f"{GPU_RESOURCE}.memory": str(gpu.driver_memory_mib),
        f"{GPU_RESOURCE}.family": "-".join(gpu.architecture.lower().split()),
        f"{GPU_RESOURCE}.compute.major": str(gpu.compute[0]),
        f"{GPU_RESOURCE}.compute.minor": str(gpu.compute[1]),
        "nvidia.com/mig.capable": "true" if gpu.mig else "false",
        "nvidia.com/mps.capable": "true" if config.strategy == MPS else "false",
    }
    if strategy != "none":
        shown["nvidia.com/mig.strategy"] = strategy
    shown |= _resource(config, GPU_RESOURCE, count, product, shareable=not mig)
    for profile, name in _names(mig, strategy).items() if strategy != "none" else ():
        if name == GPU_RESOURCE:
            # One of an instance would stand here; the whole GPU's would be wrong.
            del shown[f"{GPU_RESOURCE}.memory"]
        shown |= _resource(config, name, mig[profile] * count, f"{product}-MIG-{profile}")
    return shown


def _resource(
    config: PluginConfig, name: str, count: int, product: str, *, shareable: bool = True
) -> dict[str, str]:
    """Labels of one resource; GPUs that are cut are not shareable."""
    replicas = config.replicas.get(name, 1) if shareable else 0
    shared = replicas > 1
    suffix = "-SHARED" if shared and not config.renamed else ""
    return {
        f"{name}.count": str(count),
        f"{name}.replicas": str(replicas),
        f"{name}.sharing-strategy": config.strategy if shared else NONE,
        f"{name}.product": (product + suffix)[:_LABEL_LENGTH],
    }
