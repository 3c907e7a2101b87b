"""Google's driver installer for Container-Optimized OS, where GKE installs no driver.

GKE installs the driver together with its own device plugin. Where the GPU Operator's plugin serves
a pool, or its GPUs are claimed, GKE's plugin is off, and the installer has to be run as in Google's
documentation (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers).
The image of the installer is on every node.

The DaemonSet is Google's own
(https://github.com/GoogleCloudPlatform/container-engine-accelerators,
nvidia-driver-installer/cos/daemonset-preloaded.yaml at 992db812). A test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.gke import PoolSettings
from berth.components.hardware.names import ACCELERATOR_LABEL
from berth.components.operators.operator import Object, Operator, Part

NAME = "nvidia-driver-installer"

HOST_DRIVER = "/home/kubernetes/bin/nvidia"
"""Folder of the driver on a node: the root file system of Container-Optimized OS is read-only."""

_IMAGE = "cos-nvidia-installer:fixed"
"""Image of the installer, which is on every COS node; never pulled."""

_PARTITION_IMAGE = (
    "gcr.io/gke-release/nvidia-partition-gpu@sha256:de12f85ebfb4fb6c1893cd30c23aab662a72fa0448f97ef74fccb82d7522ef17"
)
"""Google's program that cuts GPUs into MIG instances where GKE asks for them
(/etc/nvidia/gpu_config.json)."""

PAUSE = "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
"""Image of a container that does nothing, in the version of Google's own DaemonSets."""

_INSTALL = """if lsmod | grep nvidia; then
  echo "a driver is loaded: nothing is installed"
else
  /cos-gpu-installer install
fi
"""
"""Script that never replaces a loaded driver: it may be of another version, and jobs may use it."""

_FOLDERS = {
    "dev": ("/dev", "/dev"),
    "vulkan-icd-mount": (f"{HOST_DRIVER}/vulkan/icd.d", "/etc/vulkan/icd.d"),
    "nvidia-install-dir-host": (HOST_DRIVER, "/usr/local/nvidia"),
    "root-mount": ("/", "/root"),
    "cos-tools": ("/var/lib/cos-tools", "/build/cos-tools"),
    "nvidia-config": ("/etc/nvidia", "/etc/nvidia"),
}
"""Folders of the node, and their paths in containers, by the name of the volume."""

_VARIABLES = {
    "NVIDIA_INSTALL_DIR": "nvidia-install-dir-host",
    "VULKAN_ICD_DIR": "vulkan-icd-mount",
    "COS_TOOLS_DIR": "cos-tools",
}
"""Volumes whose two paths the installer has in the variables ..._HOST and ..._CONTAINER."""


@dataclass(frozen=True)
class DriverInstaller(Operator[None]):
    """The installer, once for all pools that need it; it has no settings."""

    settings: None = None

    title: ClassVar[str] = "GPU driver installer"
    release: ClassVar[str] = NAME

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether a pool needs the installer: GKE runs it on pools whose GPUs it serves."""
        return (pool.by_operator or pool.by_dra) and pool.driver == "gke" and pool.node_image == "cos"

    def parts(self, name: str) -> Iterator[Part]:
        """Yield the DaemonSet, which was a part of the GPU Operator until others needed it too."""
        del name
        yield Object(NAME, driver_installer(), was_part_of="berth:operators:GpuOperator::gpu-operator")


def driver_installer() -> Manifest:
    """Return the DaemonSet, for nodes with GPUs on which GKE installs no driver."""
    needed = [
        {"key": ACCELERATOR_LABEL, "operator": "Exists"},
        {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
        # Confidential nodes need another installer (daemonset-confidential.yaml).
        {"key": "cloud.google.com/gke-confidential-nodes-instance-type", "operator": "DoesNotExist"},
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": needed}]}
    return installer_daemon_set(
        NAME,
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        volumes=[{"name": name, "hostPath": {"path": path}} for name, (path, _) in _FOLDERS.items()],
        containers=[_installer(), _partition_gpus()],
    )


def installer_daemon_set(
    name: str, *, affinity: Manifest, volumes: Sequence[Manifest], containers: Sequence[Manifest]
) -> Manifest:
    """Return a DaemonSet of Google's with privileged init containers that install on each node."""
    labels = {"k8s-app": name}
    privileged = {"securityContext": {"privileged": True}, "resources": {"requests": {"cpu": "150m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "labels": {**labels, **MANAGED_BY}},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"name": name, **labels}},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "affinity": affinity,
                    "tolerations": [{"operator": "Exists"}],
                    "hostNetwork": True,
                    "hostPID": True,
                    "volumes": list(volumes),
                    "initContainers": [{**privileged, **container} for container in containers],
                    "containers": [{"name": "pause", "image": PAUSE}],
                },
            },
        },
    }


def _installer() -> Manifest:
    variables = {}
    for prefix, volume in _VARIABLES.items():
        variables[f"{prefix}_HOST"], variables[f"{prefix}_CONTAINER"] = _FOLDERS[volume]
    variables["ROOT_MOUNT_DIR"] = _FOLDERS["root-mount"][1]
    return {
        "name": NAME,
        "image": _IMAGE,
        "imagePullPolicy": "Never",
        "command": ["bash", "-c", _INSTALL],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "volumeMounts": _mounts("nvidia-install-dir-host", "vulkan-icd-mount", "dev", "root-mount", "cos-tools"),
    }


def _partition_gpus() -> Manifest:
    return {
        "name": "partition-gpus",
        "image": _PARTITION_IMAGE,
        "env": [{"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"}],
        "volumeMounts": _mounts("nvidia-install-dir-host", "dev", "nvidia-config"),
    }


def _mounts(*volumes: str) -> list[Manifest]:
    return [{"name": name, "mountPath": _FOLDERS[name][1]} for name in volumes]
