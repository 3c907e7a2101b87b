"""Google's driver installer for Container-Optimized OS, for nodes that GKE's own automation leaves alone.

GKE installs the driver together with its own device plugin. Where the GPU Operator's plugin serves a pool, GKE's is off, and the
installer has to be run as Google's documentation has it
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus#installing_drivers). Its image is part of the node's.
"""

from __future__ import annotations

from components.manifest import MANAGED_BY, Manifest

NAME = "nvidia-driver-installer"
NAMESPACE = "kube-system"

_HOST_DIRECTORY = "/home/kubernetes/bin/nvidia"
_IMAGE = "cos-nvidia-installer:fixed"
"""The name under which every COS node has the installer; never pulled."""


def driver_installer() -> Manifest:
    """The DaemonSet. It runs on nodes with GPUs on which GKE installs no driver."""
    labels = {"k8s-app": NAME}
    needed = [
        {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
        {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
    ]
    host = {"dev": "/dev", "nvidia": _HOST_DIRECTORY, "root": "/"}
    installer = {
        "name": NAME,
        "image": _IMAGE,
        "imagePullPolicy": "Never",
        "securityContext": {"privileged": True},
        "resources": {"requests": {"cpu": "150m"}},
        "env": [
            {"name": "NVIDIA_INSTALL_DIR_HOST", "value": _HOST_DIRECTORY},
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
