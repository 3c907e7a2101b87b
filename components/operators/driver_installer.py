"""Google's driver installer for Container-Optimized OS, for nodes that GKE's own automation leaves alone.

GKE installs the driver together with its own device plugin. Where the GPU Operator's plugin serves a pool, or its GPUs are claimed,
GKE's is off, and the installer has to be run as Google's documentation has it
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers). The image of the installer is on every node.

The DaemonSet is Google's own (https://github.com/GoogleCloudPlatform/container-engine-accelerators,
nvidia-driver-installer/cos/daemonset-preloaded.yaml at 992db812). A test compares the two
(tests/unit/components/upstream/nvidia-driver-installer.yaml).
"""

from __future__ import annotations

import pulumi

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.sharing import Pools

NAME = "nvidia-driver-installer"
NAMESPACE = "kube-system"

HOST_DRIVER = "/home/kubernetes/bin/nvidia"
"""Where the installer puts the driver: the root file system of Container-Optimized OS is read-only."""

_IMAGE = "cos-nvidia-installer:fixed"
"""The name under which every COS node has the installer; never pulled."""

_PARTITION_IMAGE = (
    "gcr.io/gke-release/nvidia-partition-gpu@sha256:de12f85ebfb4fb6c1893cd30c23aab662a72fa0448f97ef74fccb82d7522ef17"
)
"""Google's program that cuts GPUs into MIG instances where GKE asks for them (/etc/nvidia/gpu_config.json); else it does nothing."""

PAUSE = "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
"""The image of a container that does nothing, in the version of Google's own DaemonSets."""

_INSTALL = """if lsmod | grep nvidia; then
  echo "a driver is loaded: nothing is installed"
else
  /cos-gpu-installer install
fi
"""
"""A loaded driver is never installed over: it may be of another version, and jobs may use it."""

_FOLDERS = {
    "dev": ("/dev", "/dev"),
    "vulkan-icd-mount": (f"{HOST_DRIVER}/vulkan/icd.d", "/etc/vulkan/icd.d"),
    "nvidia-install-dir-host": (HOST_DRIVER, "/usr/local/nvidia"),
    "root-mount": ("/", "/root"),
    "cos-tools": ("/var/lib/cos-tools", "/build/cos-tools"),
    "nvidia-config": ("/etc/nvidia", "/etc/nvidia"),
}
"""Folders of the node by the names of their volumes, and where containers have them."""

_VARIABLES = {
    "NVIDIA_INSTALL_DIR": "nvidia-install-dir-host",
    "VULKAN_ICD_DIR": "vulkan-icd-mount",
    "COS_TOOLS_DIR": "cos-tools",
}
"""Volumes whose two paths the installer has in the variables ..._HOST and ..._CONTAINER."""


class DriverInstaller(pulumi.ComponentResource):
    """The installer, once for all pools that need it."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Install it.

        Args:
            name: Pulumi's name.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:operators:DriverInstaller", name, None, opts)
        # It was the GPU Operator's part until others needed it too: as another resource it would be deleted after it was taken over.
        before = pulumi.Alias(parent=_urn_of_before())
        KubernetesObject(NAME, driver_installer(), pulumi.ResourceOptions(parent=self, aliases=[before]))
        self.register_outputs({})


def _urn_of_before() -> str:
    return f"urn:pulumi:{pulumi.get_stack()}::{pulumi.get_project()}::berth:operators:GpuOperator::gpu-operator"


def wants_installer(pools: Pools) -> bool:
    """Whether Google's driver installer is needed: GKE runs it by itself only on the pools whose GPUs are left to it."""
    return any(
        (pool.settings.by_operator or pool.settings.by_dra)
        and pool.settings.driver == "gke"
        and pool.settings.node_image == "cos"
        for pool in pools.values()
    )


def driver_installer() -> Manifest:
    """The DaemonSet. It runs on nodes with GPUs on which GKE installs no driver."""
    labels = {"k8s-app": NAME}
    needed = [
        {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
        {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
        # Confidential nodes need another installer (daemonset-confidential.yaml).
        {"key": "cloud.google.com/gke-confidential-nodes-instance-type", "operator": "DoesNotExist"},
    ]
    containers = [_installer(), _partition_gpus()]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {**labels, **MANAGED_BY}},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"name": NAME, **labels}},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchExpressions": needed}]
                            }
                        }
                    },
                    "tolerations": [{"operator": "Exists"}],
                    "hostNetwork": True,
                    "hostPID": True,
                    "volumes": [{"name": name, "hostPath": {"path": path}} for name, (path, _) in _FOLDERS.items()],
                    "initContainers": [{**_PRIVILEGED, **container} for container in containers],
                    "containers": [{"name": "pause", "image": PAUSE}],
                },
            },
        },
    }


_PRIVILEGED = {"securityContext": {"privileged": True}, "resources": {"requests": {"cpu": "150m"}}}


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
