"""Versions of charts and images that berth installs by default: change them here and nowhere else.

The lab's tools have their own pins in lab/tools/*/go.mod; a test holds the two together where they
must agree.
"""

KUBERAY = "1.6.2"
"""KubeRay operator and chart: the newest whose source the lab can build, so that what ships is what
is tested."""

KUBERAY_REPOSITORY = "https://ray-project.github.io/kuberay-helm/"
"""Repository of the chart kuberay-operator
(https://docs.ray.io/en/latest/cluster/kubernetes/getting-started)."""

RAY = "2.60.0"
"""Ray in the default image. Token authentication needs 2.52 or newer (KubeRay's authOptions)."""

RAY_IMAGE = f"rayproject/ray:{RAY}-py311-cu128"
"""Python 3.11; CUDA 12.8 is the first that knows the B200 (compute capability 10.0)."""

CUDA_SAMPLE_IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
"""Image that `berth verify gpu` runs: the newest tag of that name
(https://github.com/NVIDIA/cuda-samples/issues/384, August 2025), built from
https://github.com/NVIDIA/k8s-samples. For GPUs that are newer than CUDA 12.5 the driver compiles
its PTX."""

RAY_TOKEN_AUTH_SINCE = (2, 52, 0)
"""The first Ray with token authentication."""

CHART_MIRROR = "BERTH_CHART_MIRROR"
"""Environment variable: mirror of all charts, for environments whose settings name none."""

GPU_OPERATOR = "v26.7.0"
"""GPU Operator chart and operator: the newest whose values and CRD the tests are held to."""

GPU_OPERATOR_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"
"""Repository of the chart gpu-operator
(https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/)."""

_IBVERBS = (
    "injects all ibverbs devices into every pod with a GPU, which takes RDMA NICs from others; use v26.3.3 or newer"
)

GPU_OPERATOR_BAD = {"v26.3.1": _IBVERBS, "v26.3.2": _IBVERBS}
"""Versions that must not be used, with the reason (the operator's release notes of 26.3.3)."""

DRANET = "1.4.0"
"""DraNet's chart and image (https://github.com/kubernetes-sigs/dranet/releases): the version that
the lab's real node runs."""

DRANET_CHART = "oci://registry.k8s.io/networking/charts/dranet"
"""Address of DraNet's chart (https://github.com/kubernetes-sigs/dranet)."""

GPU_DRA = "0.4.1"
"""NVIDIA's DRA driver for GPUs: the newest release
(https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/tags)."""

GPU_DRA_CHART = "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu"
"""Address of the chart of NVIDIA's DRA driver for GPUs
(https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu)."""

GIB_IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib:v1.1.1"
"""Google's NCCL plugin gIB, in the version of Google's own installer manifest
(https://github.com/GoogleCloudPlatform/container-engine-accelerators,
gpudirect-rdma/nccl-rdma-installer.yaml)."""

GIB_ARM64_IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib-arm64:v1.1.0"
"""gIB for Arm's processors, in the version of Google's blueprint for A4X
(https://github.com/GoogleCloudPlatform/cluster-toolkit, examples/gke-a4x)."""
