"""The GPU Operator's operands on a node: pure rules of the device plugin, GPU feature discovery, MIG manager and validator.

The rules read the node and the operands' pods on it, as the programs in the pods do: a setting of the ClusterPolicy counts when it
has reached a pod.

Left out: memory and engines of a MIG instance among its labels, MIG profiles with media extensions, the MIG manager's pause of GPU
clients and its reboots, CUDA validation, the versions of a driver that GKE installed.

Answers to (read): https://github.com/NVIDIA/k8s-device-plugin/tree/v0.20.0 (internal/lm: labels; internal/rm and internal/plugin:
    devices and what it refuses)
Answers to (read): https://github.com/NVIDIA/gpu-operator/tree/v26.7.0/assets and cmd/nvidia-validator/main.go (which init container
    waits for what)
Answers to (read): https://github.com/NVIDIA/mig-parted/blob/v0.15.0/pkg/mig/reconfigure/reconfigure.go and pkg/mig/builder/builder.go
    (configurations come from the hardware; a name that is not among them fails before a GPU is touched)
Answers to (read): https://github.com/containerd/containerd/blob/main/internal/cri/config/config.go and
    https://github.com/NVIDIA/k8s-device-plugin/issues/479 (a pod whose runtime class has no handler gets no sandbox; so it is where
    toolkit.enabled=false)
Answers to (read): https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html (Google's driver on COS: its
    folder, and no driver of the operator's there)
Answers to (believed): a node with the label `berth/driver=preinstalled` has an image with a driver in the folder that pods look into.
    Such an image would settle it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from berth.lab.devices import plugin_config
from berth.lab.devices.advertised import GPU
from berth.lab.devices.gke_device_plugin import ACCELERATOR, DRIVER, gpus
from berth.lab.devices.gpu_operator import DISABLED, MIG_CONFIG
from berth.lab.devices.gpus import GPUS, slices
from berth.lab.devices.operand_objects import DRIVER as DRIVER_POD
from berth.lab.devices.operand_objects import DRIVER_ROOT, INSTALL_VOLUME, TOOLKIT, TOOLKIT_ROOT, VALIDATOR
from berth.lab.devices.plugin_config import MPS, SHARED, PluginConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]

MIG_STATE = "nvidia.com/mig.config.state"
PREINSTALLED = "berth/driver"
SUCCESS, FAILED = "success", "failed"
STRATEGIES = ("none", "single", "mixed")

CRASHES, CREATES, PULLS = "CrashLoopBackOff", "ContainerCreating", "ImagePullBackOff"

# Where Google's installer leaves the driver on Container-Optimized OS, whose own file system is read-only.
_COS_DRIVER = "/home/kubernetes/bin/nvidia"
_COS_WRITABLE = "/home/kubernetes/bin"
_OS = "cloud.google.com/gke-os-distribution"
_LABEL_LENGTH = 63


@dataclass(frozen=True)
class Hold:
    """Reason for which a pod on a node is not ready.

    Attributes:
        container: container that is not ready; empty where none has been started.
        reason: the kubelet's word for the container's state; empty for an init container that runs and waits.
        message: error text.
        event: reason of the kubelet's event, where it is not the usual one for `reason` (`pod_states.EVENTS`).
    """

    container: str
    reason: str
    message: str
    event: str = ""


class MigError(Exception):
    """The MIG manager can't do what a node's label asks for."""


class UnknownLayoutError(Exception):
    """The MIG manager could do what a node's label asks for, and the lab does not know what becomes of the GPUs."""


def variable(pod: Mapping[str, Any], name: str) -> str:
    """Value of a variable of a pod's main container; empty without it."""
    env = pod["spec"]["containers"][0].get("env") or []
    return next((str(each.get("value") or "") for each in env if each["name"] == name), "")


def driver_version(pods: Mapping[str, Object]) -> str:
    """Version of the driver that the operator has installed on a node; empty where it has not."""
    if DRIVER_POD not in pods:
        return ""
    _, _, tag = str(pods[DRIVER_POD]["spec"]["containers"][0]["image"]).rpartition(":")
    return tag.partition("-")[0]


def _driver_folder(pod: Mapping[str, Any]) -> str:
    volumes = {each["name"]: each for each in pod["spec"].get("volumes") or []}
    return str((volumes.get(INSTALL_VOLUME) or {}).get("hostPath", {}).get("path") or DRIVER_ROOT)


def driver_problem(labels: Mapping[str, str], pods: Mapping[str, Object], *, installer: bool) -> str:
    """Error text: the validation of the driver never ends on this node. Empty where it finds a driver.

    Args:
        labels: the node's.
        pods: the operands' pods on the node, by their DaemonSets' names.
        installer: whether a driver installer of Google's runs on the node.
    """
    if not gpus(labels):
        return "no NVIDIA driver: the machine has no GPU"
    cos = labels.get(_OS) == "cos"
    there = DRIVER in labels or installer
    if labels.get(PREINSTALLED) != "preinstalled" and not there:
        if DRIVER_POD not in pods:
            return (
                "no NVIDIA driver: GKE installs none on this node, Google's nvidia-driver-installer does not run on it, "
                "and the GPU Operator's driver does not either (driver.enabled)"
            )
        if cos:
            return "no NVIDIA driver: the operator has no driver image for Container-Optimized OS (driver.enabled=true)"
    looked = {_driver_folder(pods[name]) for name in (TOOLKIT, VALIDATOR) if name in pods}
    wrong = sorted(looked - {_COS_DRIVER})
    if cos and there and wrong:
        return f"no NVIDIA driver in {wrong[0]}: Google's is in {_COS_DRIVER} (hostPaths.driverInstallDir)"
    return ""


def blocked(labels: Mapping[str, str], pods: Mapping[str, Object], *, installer: bool) -> dict[str, Hold]:
    """Operand pods on a node that wait for the driver, the container toolkit or the validator, by their DaemonSets' names.

    Args:
        labels: the node's.
        pods: the operands' pods on the node, by their DaemonSets' names.
        installer: whether a driver installer of Google's runs on the node.
    """
    holds: dict[str, Hold] = {}
    if DRIVER_POD in pods and labels.get(_OS) == "cos":
        image = pods[DRIVER_POD]["spec"]["containers"][0]["image"]
        holds[DRIVER_POD] = Hold("nvidia-driver-ctr", PULLS, f"no such image: {image}")
    driver = driver_problem(labels, pods, installer=installer)
    if driver and TOOLKIT in pods:
        holds[TOOLKIT] = Hold("driver-validation", "", driver)
    elif TOOLKIT in pods:
        folder = variable(pods[TOOLKIT], "ROOT") or TOOLKIT_ROOT
        if labels.get(_OS) == "cos" and not folder.startswith(_COS_WRITABLE):
            message = (
                f"the container toolkit cannot be installed in {folder}: it is read-only on COS (toolkit.installDir)"
            )
            holds[TOOLKIT] = Hold("nvidia-container-toolkit-ctr", CRASHES, message)
    why = holds[TOOLKIT].message if TOOLKIT in holds else "" if TOOLKIT in pods else "no container toolkit on the node"
    for name, pod in pods.items():
        if name in holds:
            continue
        handler = pod["spec"].get("runtimeClassName")
        waits = [each["name"] for each in pod["spec"].get("initContainers") or []]
        if why and handler:
            message = f'Failed to create pod sandbox: failed to get sandbox runtime: no runtime for "{handler}" is configured: {why}'
            holds[name] = Hold("", CREATES, message)
        elif "toolkit-validation" in waits and (why or VALIDATOR not in pods):
            # The validator writes the file that the other pods wait for.
            holds[name] = Hold("toolkit-validation", "", why or "the operator's validator does not run on the node")
    return holds


def validation(resources: Mapping[str, Any], pod: Mapping[str, Any]) -> Hold | None:
    """Hold on the operator's validator, which waits until the node has GPUs; None where it has.

    Args:
        resources: what the node shows.
        pod: the validator's pod.
    """
    waits = {each["name"] for each in pod["spec"].get("initContainers") or []}
    shown = any(name.startswith((GPU, "nvidia.com/mig-")) and str(count) != "0" for name, count in resources.items())
    if "plugin-validation" not in waits or shown:
        return None
    return Hold("plugin-validation", "", "GPU resources are not discovered by the node")


def instances(labels: Mapping[str, str], now: Mapping[str, int]) -> tuple[dict[str, int], bool]:
    """MIG instances that the MIG manager cuts each GPU of a node into, by profile, and whether a label asked for them.

    Args:
        labels: the node's.
        now: the instances that there are.

    Raises:
        MigError: this GPU can't be cut so; it stays as it is.
        UnknownLayoutError: the lab does not know this configuration.
    """
    gpu = GPUS.get(labels.get(ACCELERATOR, ""))
    wanted = labels.get(MIG_CONFIG, "")
    if not wanted:
        return dict(now), False
    if wanted == DISABLED:
        return {}, True
    profiles = gpu.mig if gpu is not None else {}
    if wanted == "all-balanced" and gpu is not None and profiles:
        return gpu.balanced(), True
    profile = wanted.removeprefix("all-")
    if profiles and (profile == "enabled" or profile.rpartition(".")[0] in profiles):
        raise UnknownLayoutError(
            f"{MIG_CONFIG}={wanted}: a MIG configuration that is unknown to the lab; GPUs stay as they are"
        )
    if not wanted.startswith("all-") or profile not in profiles:
        known = ", ".join([*(f"all-{name}" for name in profiles), *(["all-balanced"] if profiles else []), DISABLED])
        name = gpu.name if gpu is not None else "this GPU"
        raise MigError(f"{MIG_CONFIG}={wanted}: {name} has no such MIG configuration; it has {known}")
    return {profile: profiles[profile]}, True


def cut(labels: Mapping[str, str]) -> dict[str, int]:
    """MIG instances of each GPU of a node whose label has been followed, by profile."""
    try:
        return instances(labels, {})[0]
    except (MigError, UnknownLayoutError):
        return {}


@dataclass(frozen=True)
class Served:
    """Devices that the device plugin registers on a node.

    Attributes:
        resources: devices by the name of the extended resource.
        single: resources of which the plugin gives a container one device at most.
        problem: why the plugin ended; empty where it runs.
    """

    resources: Mapping[str, int]
    single: frozenset[str] = field(default_factory=frozenset)
    problem: str = ""


def serve(
    labels: Mapping[str, str], strategy: str, config: PluginConfig, mig: Mapping[str, int], *, mps: bool = True
) -> Served:
    """Devices that the device plugin registers on a node that has a driver.

    Args:
        labels: the node's.
        strategy: MIG strategy of the pod; empty where the config says it.
        config: what the plugin has read.
        mig: the instances of each GPU, by profile.
        mps: whether the MPS control daemon runs on the node.
    """
    strategy = strategy or config.mig_strategy or "none"
    problem = _refused(strategy, config, mig)
    if not problem and config.strategy == MPS and not mps:
        problem = "error checking MPS daemon health: the MPS control daemon does not run on the node"
    if problem:
        return Served({}, problem=problem)
    count = gpus(labels)
    plain = {GPU: count}
    if mig and strategy != "none":
        plain = {name: mig[profile] * count for profile, name in _names(mig, strategy).items()}
    resources, single = {}, set()
    for resource, number in plain.items():
        replicas = config.replicas.get(resource, 1)
        advertised = resource + SHARED if replicas > 1 and config.renamed else resource
        resources[advertised] = number * replicas
        if replicas > 1 and config.single:
            single.add(advertised)
    return Served(resources, frozenset(single))


def features(
    labels: Mapping[str, str], strategy: str, config: PluginConfig, mig: Mapping[str, int], driver: str = ""
) -> dict[str, str]:
    """Labels of GPU feature discovery for a node that has a driver.

    Args:
        labels: the node's.
        strategy: MIG strategy of the pod; empty where the config says it.
        config: what GPU feature discovery has read.
        mig: the instances of each GPU, by profile.
        driver: version of the driver, where it is known.
    """
    strategy = strategy or config.mig_strategy or "none"
    if not gpus(labels):
        return {}
    found = _Labels(labels, config, strategy, driver)
    if not mig or strategy == "none":
        return found.whole(cut=bool(mig))
    if strategy == "single" and len(mig) > 1:
        return found.invalid()
    names = _names(mig, strategy)
    return found.cut(names, {name: mig[profile] * gpus(labels) for profile, name in names.items()})


def _names(mig: Mapping[str, int], strategy: str) -> dict[str, str]:
    return {profile: GPU if strategy == "single" else f"nvidia.com/mig-{profile}" for profile in mig}


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

    def __init__(self, labels: Mapping[str, str], config: PluginConfig, strategy: str, driver: str) -> None:
        self._gpu = GPUS.get(labels.get(ACCELERATOR, ""))
        self._count = gpus(labels)
        self._config = config
        self._strategy = strategy
        self._driver = driver

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
