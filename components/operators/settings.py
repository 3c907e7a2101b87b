"""What is installed on a cluster: operators, drivers, and from where each comes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty
from berth.components.hardware import versions


class KubeRaySettings(Settings):
    """The KubeRay operator."""

    source: Literal["chart", "addon", "present"] = "chart"
    """`chart`: berth installs it. `addon`: GKE does, in a version of its own choice. `present`: it is there already."""
    chart: NonEmpty = "kuberay-operator"
    """A chart's name in `repository`, an `oci://` reference, or a folder (begins with `.` or `/`)."""
    repository: NonEmpty | None = versions.KUBERAY_REPOSITORY
    """Chart repository; unused for an OCI reference or a folder."""
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = versions.KUBERAY
    """Version of chart and operator."""
    namespace: Name = "kuberay-operator"
    """Namespace that the operator runs in."""


def _good_gpu_operator(version: str) -> str:
    if version in versions.GPU_OPERATOR_BAD:
        raise ValueError(f"{version} {versions.GPU_OPERATOR_BAD[version]}")
    return version


class GpuOperatorSettings(Settings):
    """NVIDIA's GPU Operator: installed where a pool is managed by it, once for the cluster."""

    chart: NonEmpty = "gpu-operator"
    """A chart's name in `repository`, an `oci://` reference, or a folder (begins with `.` or `/`)."""
    repository: NonEmpty | None = versions.GPU_OPERATOR_REPOSITORY
    """Chart repository; unused for an OCI reference or a folder."""
    version: Annotated[str, Field(pattern=r"^v\d+\.\d+\.\d+$"), AfterValidator(_good_gpu_operator)] = (
        versions.GPU_OPERATOR
    )
    """Version of chart and operator."""
    namespace: Name = "gpu-operator"
    """Namespace that the operator and its daemons run in."""
    dcgm_exporter: bool = False
    """GPU metrics by NVIDIA's exporter, of the pools that the operator serves. GKE's managed DCGM gives the same ones, so by
    default there is one of them."""
    node_feature_discovery: bool = True
    """Label nodes by their hardware. A cluster that runs NFD already needs none: it must then tolerate the taints of the
    operator's pools, and label nodes by PCI vendor (`pci-10de.present`) and os-release."""
    validator: bool = True
    """Run a CUDA workload of the operator's own on every node that it serves; it takes no GPU from pods."""


class DraNetSettings(Settings):
    """DraNet, which hands RDMA NICs to pods: installed where a pool has `rdma: networks`.

    Its nodes need Container-Optimized OS and a containerd with NRI, which GKE's are.
    """

    source: Literal["chart", "manifest", "present"] = "chart"
    """`chart`: berth installs it by its chart. `manifest`: by a file with its objects. `present`: it is there already."""
    chart: NonEmpty = versions.DRANET_CHART
    """A chart's name in `repository`, an `oci://` reference, or a folder (begins with `.` or `/`)."""
    repository: NonEmpty | None = None
    """Chart repository; unused for an OCI reference or a folder."""
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = versions.DRANET
    """Version of chart and image."""
    manifest: NonEmpty | None = None
    """For `source: manifest`: a file of YAML documents, from the project's folder on, such as DraNet's install.yaml of a release."""
    namespace: Name = "kube-system"
    """Namespace that its DaemonSet runs in. GKE admits pods of system priority in kube-system."""
    node_selector: dict[NonEmpty, str] = {}
    """Nodes that it runs on, beside being of a pool with `rdma: networks`."""


class GpuDraSettings(Settings):
    """NVIDIA's DRA driver for GPUs: installed where a pool has `gpuAllocation: dra`."""

    source: Literal["chart", "present"] = "chart"
    """`chart`: berth installs it. `present`: it is there already."""
    chart: NonEmpty = versions.GPU_DRA_CHART
    """A chart's name in `repository`, an `oci://` reference, or a folder (begins with `.` or `/`)."""
    repository: NonEmpty | None = None
    """Chart repository; unused for an OCI reference or a folder."""
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = versions.GPU_DRA
    """Version of chart and driver."""
    namespace: Name = "nvidia-dra-driver-gpu"
    """Namespace that it runs in."""


class GibSettings(Settings):
    """Google's NCCL plugin for RDMA, gIB: put on nodes of pools with `rdma` by a DaemonSet in kube-system."""

    source: Literal["installer", "present"] = "installer"
    """`installer`: berth installs it. `present`: it is on the nodes already."""
    image: NonEmpty = versions.GIB_IMAGE
    """Image with the plugin."""


class OperatorsSettings(Settings):
    """What is installed on the cluster, beside what GKE brings."""

    kuberay: KubeRaySettings = KubeRaySettings()
    gpu: GpuOperatorSettings = GpuOperatorSettings()
    dranet: DraNetSettings = DraNetSettings()
    gpu_dra: GpuDraSettings = GpuDraSettings()
    gib: GibSettings = GibSettings()
