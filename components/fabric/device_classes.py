"""Device classes: the names by which claims ask for NICs and GPUs, and the one of them that berth makes. Pure.

GKE's managed DRANET brings its own, and so does NVIDIA's DRA driver; DraNet brings none
(https://github.com/kubernetes-sigs/dranet, site/content/docs/user/gke-rdma.md).
"""

from __future__ import annotations

from components.manifest import MANAGED_BY, Manifest
from stacks.settings.fabric import ResourceApi

DRANET = "dranet"
"""NICs by DraNet: the class of the DraNet documentation, made by berth."""

MANAGED_RDMA = "mrdma.google.com"
"""RDMA NICs by GKE's managed DRANET (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra)."""

GPU = "gpu.nvidia.com"
"""Whole GPUs by NVIDIA's DRA driver (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu)."""

DRANET_DRIVER = "dra.net"
"""The driver's name, in ResourceSlices and as the domain of its attributes."""


def dranet_class(api: ResourceApi) -> Manifest:
    """The class of all devices that DraNet publishes; which of them are RDMA NICs, a claim says.

    Args:
        api: the version of resource.k8s.io that the cluster serves; a class is written alike in all of them.
    """
    return {
        "apiVersion": f"resource.k8s.io/{api}",
        "kind": "DeviceClass",
        "metadata": {"name": DRANET, "labels": dict(MANAGED_BY)},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRANET_DRIVER}"'}}]},
    }
