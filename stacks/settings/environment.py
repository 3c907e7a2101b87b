"""An environment: a GKE cluster with its network, pools and operators, and the RayClusters on it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from stacks.settings import versions
from stacks.settings.base import Settings
from stacks.settings.bounds import CountOrBounds, at_most
from stacks.settings.machines import MACHINES, Machine
from stacks.settings.nearest import did_you_mean
from stacks.settings.ray import RayShape
from stacks.settings.sharing import SharingProfile
from stacks.settings.types import IpRange, Name, NonEmpty, ProjectId, Zone

_VERSION = re.compile(r"\d+\.\d+(\.\d+)?(-gke\.\d+)?")


def _known_machine(name: str) -> str:
    if name not in MACHINES:
        raise ValueError(f"{name!r} is no machine type that berth knows{did_you_mean(name, MACHINES)}")
    return name


class NetworkSettings(Settings):
    """The VPC network of the cluster. The ranges must not overlap."""

    node_range: IpRange = "10.0.0.0/20"
    """Addresses of nodes."""
    pod_range: IpRange = "10.4.0.0/14"
    """Addresses of pods."""
    service_range: IpRange = "10.0.32.0/20"
    """Addresses of Services."""


class ClusterSettings(Settings):
    """The GKE cluster."""

    name: Name | None = None
    """Name of the cluster and of what belongs to it. Default: the stack's name."""
    release_channel: Literal["RAPID", "REGULAR", "STABLE"] = "REGULAR"
    """GKE release channel."""
    version: Annotated[str, Field(pattern=f"^{_VERSION.pattern}$", examples=["1.35"])] | None = None
    """Minimum version of the control plane. Default: the channel's."""
    deletion_protection: bool = True
    """Refuse to delete the cluster until this is set to false and applied."""


class Taint(Settings):
    """A taint of every node of a pool."""

    key: NonEmpty
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class PoolSettings(Settings):
    """A node pool: nodes of one machine type."""

    machine_type: Annotated[
        str,
        AfterValidator(_known_machine),
        Field(examples=["a4-highgpu-8g"], json_schema_extra={"enum": list(MACHINES)}),
    ]
    """Compute Engine machine type."""
    nodes: CountOrBounds
    """Number of nodes, or `{min, max}` for GKE's cluster autoscaler."""
    labels: dict[NonEmpty, str] = {}
    """Labels of every node, beside those that GKE sets."""
    taints: list[Taint] = []
    """Taints of every node, beside GKE's own for GPUs."""
    node_image: Literal["cos", "ubuntu"] = "cos"
    """Container-Optimized OS, or Ubuntu with containerd. RDMA needs COS."""
    gpu_management: Literal["gke", "operator"] | None = None
    """Who advertises the pool's GPUs: GKE's own device plugin, or NVIDIA's GPU Operator, which berth installs when a pool
    wants it. Default: `operator` where the GPUs are shared, else `gke`."""
    driver: Literal["gke", "operator", "preinstalled"] = "gke"
    """Who installs NVIDIA's driver: Google's installer, the GPU Operator (Ubuntu only), or nobody, since it is there."""
    sharing: Name | None = None
    """The sharing profile of its GPUs, one of `sharing`. Default: whole GPUs."""
    rdma: Literal["none", "managed"] = "none"
    """`managed`: GKE makes the RDMA networks and installs the driver that hands the NICs to pods through DRA (managed
    DRANET). A worker then takes all GPUs and all NICs of its node."""
    disk_size_gb: Annotated[int, Field(ge=10, le=65536, strict=True)] = 200
    """Boot disk in GB: Ray images with CUDA take over 10."""

    @property
    def machine(self) -> Machine:
        """What one node has."""
        return MACHINES[self.machine_type]

    @property
    def by_operator(self) -> bool:
        """The GPU Operator serves its GPUs."""
        return self.machine.gpus > 0 and (self.gpu_management or ("operator" if self.sharing else "gke")) == "operator"

    @property
    def nodes_at_most(self) -> int:
        """Nodes that the pool can ever have."""
        return at_most(self.nodes)


class KubeRaySettings(Settings):
    """The KubeRay operator."""

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
    """GPU metrics by NVIDIA's exporter. GKE's managed DCGM gives the same ones, so by default there is one of them."""
    node_feature_discovery: bool = True
    """Label nodes by their hardware; only a cluster that runs it already needs none."""
    validator: bool = True
    """Run a CUDA workload of the operator's own on every node before its GPUs are advertised."""


class OperatorsSettings(Settings):
    """What is installed on the cluster, beside what GKE brings."""

    kuberay: KubeRaySettings = KubeRaySettings()
    gpu: GpuOperatorSettings = GpuOperatorSettings()


class FleetSettings(Settings):
    """What of an environment refers to one another: checked as a whole, wherever it is."""

    network: NetworkSettings = NetworkSettings()
    operators: OperatorsSettings = OperatorsSettings()
    sharing: dict[Name, SharingProfile] = {}
    """Ways to share GPUs, by name, for the pools' `sharing`. The one named `any` is the device plugin's default."""
    pools: Annotated[dict[Name, PoolSettings], Field(min_length=1)]
    """Node pools by name."""
    defaults: RayShape = RayShape()
    """What berths and clusters have where they don't say otherwise."""
    engineers: dict[Name, RayShape] = {}
    """One berth for each engineer, by the engineer's id. `alice: {}` takes all defaults."""
    clusters: dict[Name, RayShape] = {}
    """Named RayClusters whose workers each take a whole node unless they say otherwise."""

    @field_validator("engineers", "clusters", mode="before")
    @classmethod
    def _empty_entry(cls, value: object) -> object:
        """`alice:` with nothing after it reads as null and means all defaults."""
        if isinstance(value, dict):
            return {key: {} if entry is None else entry for key, entry in value.items()}
        return value


class EnvironmentSettings(FleetSettings):
    """One environment: `pulumi up` on its stack makes all of it."""

    project: ProjectId
    """Google Cloud project."""
    zone: Zone
    """Zone of the cluster and its nodes."""
    cluster: ClusterSettings = ClusterSettings()
