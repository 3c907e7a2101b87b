"""Names that claims and pods have in common with the drivers that serve them. No Pulumi here: `berth check` reads them too."""

from __future__ import annotations

DRANET = "dranet"
"""The device class of NICs by DraNet: that of the DraNet documentation, made by berth."""

MANAGED_RDMA = "mrdma.google.com"
"""The device class of RDMA NICs by GKE's managed DRANET
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra)."""

GPU = "gpu.nvidia.com"
"""The device class of whole GPUs by NVIDIA's DRA driver, and the driver's name, as in its ResourceSlices and as the domain of its
attributes (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu)."""

MIG = "mig.nvidia.com"
"""The device class of MIG instances by NVIDIA's DRA driver; their attributes are in the driver's domain."""

DRANET_DRIVER = "dra.net"
"""DraNet's driver, in ResourceSlices and as the domain of its attributes. GKE's managed DRANET has the same."""

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
"""The attribute of a device that names its PCIe root, alike for GPUs and NICs."""

CLAIMED_GPUS = "berth/claimed-gpus"
"""Annotation of a pod: how many GPUs, or MIG instances, it has by claims. Counted resources stand in its limits, but a pod says only
by which template it claims."""
