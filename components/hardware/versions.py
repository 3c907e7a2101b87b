"""Versions of charts and images that berth installs by default: change them here only.

The lab's tools have their own pins in lab/tools/*/go.mod; a test holds the two together where they
must agree.
"""

import re

_NUMBERS = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")

CHART_MIRROR = "BERTH_CHART_MIRROR"
"""Environment variable: mirror of all charts, for environments whose settings name none."""

KUBERAY = "1.6.2"
"""Version of KubeRay: the newest whose source the lab can build, so that what ships is what is
tested."""

KUBERAY_REPOSITORY = "https://ray-project.github.io/kuberay-helm/"
"""Repository of KubeRay's chart
(https://docs.ray.io/en/latest/cluster/kubernetes/getting-started)."""

RAY = "2.60.0"
"""Version of Ray; token authentication needs 2.52 or newer (KubeRay's authOptions)."""

RAY_TOKEN_AUTH_SINCE = (2, 52, 0)
"""The first Ray with token authentication."""

RAY_IMAGE = f"rayproject/ray:{RAY}-py311-cu128"
"""Image of Ray with Python 3.11; CUDA 12.8 is the first that knows the B200 (compute capability
10.0)."""

CUDA_SAMPLE_IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
"""Image that `berth verify gpu` runs: in August 2025 the newest tag of that name
(https://github.com/NVIDIA/cuda-samples/issues/384), built from
https://github.com/NVIDIA/k8s-samples. For GPUs that are newer than CUDA 12.5 the driver compiles
its PTX."""

GPU_OPERATOR = "v26.7.0"
"""Version of the GPU Operator: the newest whose values and CRD the tests are held to."""

GPU_OPERATOR_REPOSITORY = "https://helm.ngc.nvidia.com/nvidia"
"""Repository of the GPU Operator's chart
(https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/)."""

_INJECTS_IBVERBS = (
    "injects all ibverbs devices into every pod with a GPU, which takes RDMA NICs from others; use"
    " v26.3.3 or newer"
)

GPU_OPERATOR_BAD = {"v26.3.1": _INJECTS_IBVERBS, "v26.3.2": _INJECTS_IBVERBS}
"""Versions of the GPU Operator that must not be used, with the reason (the operator's release notes
of 26.3.3)."""

GPU_OPERATOR_WITHOUT_ESCAPES = "v25.3.1"
"""The first version of the GPU Operator whose container toolkit keeps containers off their node.

Those before have CVE-2025-23266 and CVE-2025-23267 with CDI on, as berth has it, and older ones
CVE-2025-23359, CVE-2024-0132 and others: the records of the CVEs, and NVIDIA's list
(https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/security.html)."""

CONTAINER_TOOLKIT_WITHOUT_ESCAPES = "v1.17.8"
"""The first version of NVIDIA's container toolkit without these, by the same sources."""

_ESCAPES = "lets a container take over its node (CVE-2025-23266 and others)"


def fault_of_gpu_operator(version: str) -> str:
    """Return why a version of the GPU Operator must not be used, and which may; "" for none."""
    if version in GPU_OPERATOR_BAD:
        return GPU_OPERATOR_BAD[version]
    if _is_older(version, GPU_OPERATOR_WITHOUT_ESCAPES):
        return f"{_ESCAPES}; use {GPU_OPERATOR_WITHOUT_ESCAPES} or newer"
    return ""


def fault_of_container_toolkit(version: str) -> str:
    """Return why a version of NVIDIA's container toolkit must not be used; "" for none.

    Args:
        version: tag of its image, such as `v1.17.5-ubuntu20.04`.
    """
    if _is_older(version, CONTAINER_TOOLKIT_WITHOUT_ESCAPES):
        return f"{_ESCAPES}; use {CONTAINER_TOOLKIT_WITHOUT_ESCAPES} or newer"
    return ""


def _is_older(version: str, first: str) -> bool:
    """Return whether a version is older than another; one that is not read is not."""
    numbers = _NUMBERS.match(version)
    bound = _NUMBERS.match(first)
    if numbers is None or bound is None:
        return False
    return tuple(map(int, numbers.groups())) < tuple(map(int, bound.groups()))


DRANET = "1.4.0"
"""Version of DraNet: the one that the lab's real node runs
(https://github.com/kubernetes-sigs/dranet/releases)."""

DRANET_CHART = "oci://registry.k8s.io/networking/charts/dranet"
"""Chart of DraNet (https://github.com/kubernetes-sigs/dranet)."""

GPU_DRA = "0.4.1"
"""Version of NVIDIA's DRA driver: the one whose chart the tests know. Newer is 0.5.0, of August
2026 (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/1365)."""

GPU_DRA_CHART = "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu"
"""Chart of NVIDIA's DRA driver (https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu)."""

GIB_IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib:v1.1.2"
"""Image of gIB, in the version of Google's own test of managed RDMA networks
(https://github.com/GoogleCloudPlatform/container-engine-accelerators,
gpudirect-rdma/nccl-test-managed-rdma.yaml)."""

GIB_ARM64_IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib-arm64:v1.1.0"
"""Image of gIB for Arm's processors, in the version of Google's blueprint for A4X
(https://github.com/GoogleCloudPlatform/cluster-toolkit, examples/gke-a4x)."""
