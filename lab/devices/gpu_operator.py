"""What the GPU Operator's operands make of a node: pure rules of the operator v26.7 and the device plugin v0.20.

Sources: NVIDIA's pages "NVIDIA GPU Operator with Google GKE", "Time-Slicing GPUs in Kubernetes" and "GPU Operator with
MIG"; README and sources of k8s-device-plugin (`internal/lm`: the labels; `internal/rm`: admission) and of gpu-operator.

The lab leaves out: the containers themselves, so nothing is installed on a node; custom ConfigMaps of the MIG manager; the
MIG manager's reboots; memory and engines of a MIG instance among its labels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lab.devices import plugin_config
from lab.devices.advertised import GPU
from lab.devices.gke_device_plugin import ACCELERATOR, DRIVER, gpus, kept_off
from lab.devices.gpus import GPUS, slices
from lab.devices.plugin_config import MPS, SHARED, PluginConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

# Set by node feature discovery where the PCI bus has a device of NVIDIA's; the operator looks for nothing else.
PCI = "feature.node.kubernetes.io/pci-10de.present"
PRESENT = "nvidia.com/gpu.present"
DEPLOY = "nvidia.com/gpu.deploy.device-plugin"
CONFIG = "nvidia.com/device-plugin.config"
MIG_CONFIG = "nvidia.com/mig.config"
MIG_STATE = "nvidia.com/mig.config.state"
PREINSTALLED = "berth/driver"

SUCCESS, FAILED = "success", "failed"
STRATEGIES = ("none", "single", "mixed")

# Where Google's installer leaves the driver on Container-Optimized OS, whose own file system is read-only.
_COS_DRIVER = "/home/kubernetes/bin/nvidia"
_COS_WRITABLE = "/home/kubernetes/bin"
_OPERANDS = "nvidia.com/gpu.deploy.operands"
_OS = "cloud.google.com/gke-os-distribution"
_LABEL_LENGTH = 63


class MigError(Exception):
    """The MIG manager can't do what a node's label asks for."""


@dataclass(frozen=True)
class Policy:
    """The parts of a ClusterPolicy that the rules need.

    Attributes:
        spec: the ClusterPolicy's spec.
    """

    spec: Mapping[str, Any]

    def part(self, name: str) -> Mapping[str, Any]:
        """A component's settings, such as `devicePlugin`."""
        return self.spec.get(name) or {}

    def enabled(self, name: str) -> bool:
        """Whether a component is on, which is what the operator takes for granted."""
        return self.part(name).get("enabled") is not False

    @property
    def config_map(self) -> str:
        """Name of the device plugin's ConfigMap; empty without one."""
        return str((self.part("devicePlugin").get("config") or {}).get("name") or "")

    @property
    def default_config(self) -> str:
        """The entry of nodes without a label of their own; empty for none."""
        return str((self.part("devicePlugin").get("config") or {}).get("default") or "")

    @property
    def mig_strategy(self) -> str:
        """What all nodes use; empty where each node's entry of the ConfigMap says it."""
        return str(self.part("mig").get("strategy") or "")

    def fingerprint(self) -> str:
        """What a plugin's pods are made from: another one means other pods."""
        parts = {name: self.part(name) for name in ("daemonsets", "devicePlugin", "hostPaths", "mig")}
        return json.dumps(parts, sort_keys=True)


def served(labels: Mapping[str, str]) -> bool:
    """Whether the operator looks after a node: it has GPUs, and neither GKE's plugin nor a label keeps it off."""
    return gpus(labels) > 0 and kept_off(labels) and labels.get(_OPERANDS) != "false"


def detected(labels: Mapping[str, str]) -> bool:
    """Whether the operator sees that the node has GPUs."""
    return labels.get(PCI) == "true"


def obstacle(labels: Mapping[str, str], policy: Policy, *, installer: bool) -> str:
    """Why the operands wait for a driver on a node, in their init containers, for ever; empty where they don't.

    Args:
        labels: the node's.
        policy: the ClusterPolicy's settings.
        installer: whether a driver installer of Google's runs on the node.
    """
    cos = labels.get(_OS) == "cos"
    there = DRIVER in labels or installer
    if labels.get(PREINSTALLED) != "preinstalled" and not there:
        if not policy.enabled("driver"):
            return (
                "no NVIDIA driver: GKE installs none on this node, Google's nvidia-driver-installer does not run on it, "
                "and the ClusterPolicy has driver.enabled=false"
            )
        if cos:
            return "no NVIDIA driver: the operator has no driver image for Container-Optimized OS (driver.enabled=true)"
    if not cos:
        return ""
    folder = str(policy.part("hostPaths").get("driverInstallDir") or "/run/nvidia/driver")
    if there and folder != _COS_DRIVER:
        return f"no NVIDIA driver in {folder}: Google's is in {_COS_DRIVER} (hostPaths.driverInstallDir)"
    toolkit = str(policy.part("toolkit").get("installDir") or "/usr/local/nvidia")
    if policy.enabled("toolkit") and not toolkit.startswith(_COS_WRITABLE):
        return f"the container toolkit cannot be installed in {toolkit}: it is read-only on COS (toolkit.installDir)"
    return ""


def instances(labels: Mapping[str, str], policy: Policy) -> dict[str, int]:
    """The MIG instances that each GPU of a node is cut into, by profile; empty for whole GPUs.

    Raises:
        MigError: this GPU can't be cut so.
    """
    gpu = GPUS.get(labels.get(ACCELERATOR, ""))
    wanted = labels.get(MIG_CONFIG) or str((policy.part("migManager").get("config") or {}).get("default") or "")
    # The manager runs on nodes whose GPUs can do MIG only.
    if gpu is None or not gpu.mig or not policy.enabled("migManager") or wanted in {"", "all-disabled"}:
        return {}
    if wanted == "all-balanced":
        return gpu.balanced()
    profile = wanted.removeprefix("all-")
    if not wanted.startswith("all-") or profile not in gpu.mig:
        raise MigError(
            f"{MIG_CONFIG}={wanted}: {gpu.name} has no such MIG configuration; it has "
            f"{', '.join(f'all-{name}' for name in gpu.mig)}, all-balanced and all-disabled"
        )
    return {profile: gpu.mig[profile]}


@dataclass(frozen=True)
class Served:
    """What a node shows.

    Attributes:
        resources: devices by the name of the extended resource.
        labels: of feature discovery.
        single: resources of which the plugin gives a container one device at most.
        problem: why the plugin ended; empty where it runs.
    """

    resources: Mapping[str, int]
    labels: Mapping[str, str]
    single: frozenset[str] = field(default_factory=frozenset)
    problem: str = ""


def serve(labels: Mapping[str, str], policy: Policy, config: PluginConfig, mig: Mapping[str, int]) -> Served:
    """What plugin and feature discovery make of a node that has a driver.

    Args:
        labels: the node's.
        policy: the ClusterPolicy's settings.
        config: what the plugin has read.
        mig: the instances of each GPU, by profile.
    """
    strategy = policy.mig_strategy or config.mig_strategy or "none"
    found = _Labels(labels, policy, config, strategy)
    problem = _refused(strategy, config, mig)
    if problem:
        invalid = strategy == "single" and len(mig) > 1
        return Served({}, found.invalid() if invalid else {}, problem=problem)
    count = gpus(labels)
    plain = {GPU: count}
    if mig and strategy != "none":
        name = {profile: GPU if strategy == "single" else f"nvidia.com/mig-{profile}" for profile in mig}
        plain = {name[profile]: number * count for profile, number in mig.items()}
        shown = found.cut(name, plain)
    else:
        shown = found.whole(cut=bool(mig))
    resources, single = {}, set()
    for resource, number in plain.items():
        replicas = config.replicas.get(resource, 1)
        advertised = resource + SHARED if replicas > 1 and config.renamed else resource
        resources[advertised] = number * replicas
        if replicas > 1 and config.single:
            single.add(advertised)
    return Served(resources, shown if policy.enabled("gfd") else {}, frozenset(single))


def _refused(strategy: str, config: PluginConfig, mig: Mapping[str, int]) -> str:
    if strategy not in STRATEGIES:
        return f"unknown MIG strategy: {strategy}"
    if config.strategy == MPS:
        if strategy == "mixed":
            return "using --mig-strategy=mixed is not supported with MPS"
        if mig and strategy != "none":
            return "sharing using MPS is not supported for MIG devices"
    if strategy == "single" and len(mig) > 1:
        return "invalid MIG configuration for --mig-strategy=single: more than one MIG device type present on node"
    return ""


class _Labels:
    """The labels of feature discovery for one node."""

    def __init__(self, labels: Mapping[str, str], policy: Policy, config: PluginConfig, strategy: str) -> None:
        self._gpu = GPUS.get(labels.get(ACCELERATOR, ""))
        self._count = gpus(labels)
        self._config = config
        self._strategy = strategy
        self._driver = str(policy.part("driver").get("version") or "") if policy.enabled("driver") else ""

    def _common(self) -> dict[str, str]:
        shown = {
            "nvidia.com/gpu.machine": "Google-Compute-Engine",
            "nvidia.com/gpu.mode": "compute",
            "nvidia.com/mig.capable": _text(value=bool(self._gpu and self._gpu.mig)),
            "nvidia.com/mps.capable": _text(value=self._config.strategy == MPS),
        }
        if self._strategy != "none":
            shown["nvidia.com/mig.strategy"] = self._strategy
        if self._driver:
            # Only where the operator installs it: which driver GKE chose can't be known without one.
            shown["nvidia.com/cuda.driver-version.full"] = self._driver
            names = ("major", "minor", "revision")
            parts = zip(names, self._driver.split("."), strict=False)
            shown |= {f"nvidia.com/cuda.driver-version.{name}": part for name, part in parts}
        return shown

    def _described(self) -> dict[str, str]:
        if self._gpu is None:
            return {}
        major, minor = self._gpu.compute
        return {
            f"{GPU}.memory": str(self._gpu.memory_mib),
            f"{GPU}.family": self._gpu.family,
            f"{GPU}.compute.major": str(major),
            f"{GPU}.compute.minor": str(minor),
        }

    def _resource(self, name: str, count: int, product: str, *, shareable: bool = True) -> dict[str, str]:
        replicas = self._config.replicas.get(name, 1) if shareable else 0
        shared = replicas > 1
        suffix = "-SHARED" if shared and not self._config.renamed else ""
        shown = {
            f"{name}.count": str(count),
            f"{name}.replicas": str(replicas),
            f"{name}.sharing-strategy": self._config.strategy if shared else plugin_config.NONE,
        }
        return shown | ({f"{name}.product": (product + suffix)[:_LABEL_LENGTH]} if product else {})

    def whole(self, *, cut: bool) -> dict[str, str]:
        """Whole GPUs, or such that are cut while the plugin doesn't care for MIG."""
        product = self._gpu.product if self._gpu else ""
        return self._common() | self._described() | self._resource(GPU, self._count, product, shareable=not cut)

    def cut(self, names: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, str]:
        """GPUs that are cut into instances, each profile under its own resource or all under the GPUs'."""
        shown = self.whole(cut=True)
        product = self._gpu.product if self._gpu else ""
        for profile, name in names.items():
            if name == GPU:
                # One of an instance would stand here; the whole GPU's would be wrong.
                del shown[f"{GPU}.memory"]
            shown |= self._resource(name, counts[name], f"{product}-MIG-{profile}")
            shown |= {f"{name}.slices.gi": str(slices(profile)), f"{name}.slices.ci": str(slices(profile))}
        return shown

    def invalid(self) -> dict[str, str]:
        """GPUs that are cut in a way that the strategy `single` can't show."""
        product = f"{self._gpu.product}-MIG-INVALID" if self._gpu else ""
        none = {f"{GPU}.count": "0", f"{GPU}.replicas": "0", f"{GPU}.memory": "0", f"{GPU}.sharing-strategy": ""}
        return self._common() | none | ({f"{GPU}.product": product} if product else {})


def _text(*, value: bool) -> str:
    return "true" if value else "false"
