"""Names that GKE and drivers of GPUs and NICs read from nodes, pods and claims, with sources."""

from typing import Literal

GPU_RESOURCE = "nvidia.com/gpu"
"""Resource under which whole GPUs are advertised, and shared ones that are not renamed; GKE taints
nodes with it."""

ARCHITECTURE = "kubernetes.io/arch"
"""Label of every node: amd64 or arm64; GKE taints nodes with the latter by it
(GoogleCloudPlatform/cluster-autoscaler at 7d25050, autoscaling_gke_client.go)."""

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
"""Variable that NVIDIA's container runtime reads as a request for GPUs of the node."""

# Labels of nodes that GKE sets.

POOL_LABEL = "cloud.google.com/gke-nodepool"
"""Label of every node: the name of its pool."""

METADATA_SERVER_LABEL = "iam.gke.io/gke-metadata-server-enabled"
"""Label of nodes that run GKE's metadata server."""

# Of nodes whose GPUs GKE shares by itself (GoogleCloudPlatform/cluster-autoscaler at 7d25050,
# pkg/cloudprovider/gke/labels).
GKE_STRATEGY_LABEL = "cloud.google.com/gke-gpu-sharing-strategy"
"""Label of nodes whose GPUs GKE shares: `time-sharing` or `mps`."""
GKE_SHARES_LABEL = "cloud.google.com/gke-max-shared-clients-per-gpu"
"""Label of nodes whose GPUs GKE shares: the shares of a GPU."""
GKE_SIZE_LABEL = "cloud.google.com/gke-gpu-partition-size"
"""Label of nodes whose GPUs GKE shares: a MIG size."""

MAINTENANCE_LABEL = "cloud.google.com/scheduled-maintenance-time"
"""Label of a node whose host is maintained: the Unix time at which the node goes down
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/view-maintenance-events)."""

ACCELERATOR_LABEL = "cloud.google.com/gke-accelerator"
"""Label of a node with GPUs: GKE's name for the GPU."""

# Labels of nodes that GKE obeys.

MANAGED_DRANET_LABEL = "cloud.google.com/gke-networking-dra-driver"
"""Label of nodes on which GKE runs its managed DRANET
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra)."""

NO_GKE_PLUGIN_LABEL = "gke-no-default-nvidia-gpu-device-plugin"
"""Label of nodes that GKE keeps its own device plugin off (docs.cloud.google.com/kubernetes-engine,
"GPU Operator on GKE")."""

CLAIMED_LABEL = "cloud.google.com/gke-nvidia-gpu-dra-driver"
"""Label of nodes whose GPUs NVIDIA's DRA driver serves; GKE's autoscaler counts claimable devices
by it (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra)."""

# Labels of nodes that NVIDIA's programs obey.

CONFIG_LABEL = "nvidia.com/device-plugin.config"
"""Label of a node: an entry of the device plugin's ConfigMap, which the plugin watches."""

WHOLE_KEY = "none"
"""Entry of the device plugin's ConfigMap for whole GPUs. It is the default: a node shares its GPUs
only where its label says so."""

MIG_LABEL = "nvidia.com/mig.config"
"""Label of a node: a layout of MIG instances; the MIG manager watches it."""

OPERANDS_LABEL = "nvidia.com/gpu.deploy.operands"
"""Label of a node: "false" keeps all daemons of the GPU Operator off, its device plugin too
(https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html)."""

DEPLOYED_LABEL = "nvidia.com/gpu.deploy.device-plugin"
"""Label that the GPU Operator sets to "true" where its device plugin is to run."""

# Device classes.

DRANET = "dranet"
"""Device class of NICs that DraNet serves, named as in DraNet's documentation; berth creates it."""

MANAGED_RDMA = "mrdma.google.com"
"""Device class of RDMA NICs that GKE's managed DRANET serves
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra)."""

GPU = "gpu.nvidia.com"
"""Device class of whole GPUs that NVIDIA's DRA driver serves, and the driver's name: in its
ResourceSlices, and as the domain of its attributes
(https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu)."""

MIG = "mig.nvidia.com"
"""Device class of MIG instances that NVIDIA's DRA driver serves; their attributes are in the
driver's domain."""

NVLINK_CHANNEL = "compute-domain-default-channel.nvidia.com"
"""Device class of a node's channel to the GPUs of other nodes by NVLink, which NVIDIA's DRA driver
serves (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu, cmd/compute-domain-controller)."""

DEVICE_CLASSES = (GPU, MIG, DRANET, MANAGED_RDMA, NVLINK_CHANNEL)
"""Device classes that pods of berths claim. The admission policy `berth-claims` lists the same
ones."""

DRANET_DRIVER = "dra.net"
"""DraNet's driver, in ResourceSlices and as the domain of its attributes; GKE's managed DRANET uses
the same name."""

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
"""Attribute of a device that names its PCIe root, the same for GPUs and NICs."""

CLAIMED_GPUS = "berth/claimed-gpus"
"""Annotation of a pod: number of GPUs, or MIG instances, that the pod gets through claims. The
pod's limits do not have that number, and the pod itself names only the claim's template."""

ResourceApi = Literal["v1", "v1beta2", "v1beta1"]
"""Versions of the API group resource.k8s.io in which claims can be written, the newest first."""
