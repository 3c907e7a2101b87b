"""Google's driver installer for Container-Optimized OS, for nodes that GKE's own automation leaves alone.

GKE installs the driver together with its own device plugin. Where the GPU Operator's plugin serves a pool, or its GPUs are claimed,
GKE's is off, and the installer has to be run as Google's documentation has it
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers). Its image is part of the node's.
"""

from __future__ import annotations

import pulumi

from components.manifest import MANAGED_BY, KubernetesObject, Manifest
from stacks.settings.pools import Pools

NAME = "nvidia-driver-installer"
NAMESPACE = "kube-system"

HOST_DRIVER = "/home/kubernetes/bin/nvidia"
"""Where the installer puts the driver: the root file system of Container-Optimized OS is read-only."""

_IMAGE = "cos-nvidia-installer:fixed"
"""The name under which every COS node has the installer; never pulled."""


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
    ]
    host = {"dev": "/dev", "nvidia": HOST_DRIVER, "root": "/"}
    installer = {
        "name": NAME,
        "image": _IMAGE,
        "imagePullPolicy": "Never",
        "securityContext": {"privileged": True},
        "resources": {"requests": {"cpu": "150m"}},
        "env": [
            {"name": "NVIDIA_INSTALL_DIR_HOST", "value": HOST_DRIVER},
            {"name": "NVIDIA_INSTALL_DIR_CONTAINER", "value": "/usr/local/nvidia"},
            {"name": "ROOT_MOUNT_DIR", "value": "/root"},
        ],
        "volumeMounts": [
            {"name": "nvidia", "mountPath": "/usr/local/nvidia"},
            {"name": "dev", "mountPath": "/dev"},
            {"name": "root", "mountPath": "/root"},
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {**labels, **MANAGED_BY}},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": labels},
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
                    "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in host.items()],
                    "initContainers": [installer],
                    "containers": [{"name": "pause", "image": "gke.gcr.io/pause:3.8"}],
                },
            },
        },
    }
