"""An environment: a GKE cluster with its network, pools and operators, and the RayClusters on it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from stacks.settings import versions
from stacks.settings.base import Settings
from stacks.settings.cluster import ClusterSettings
from stacks.settings.network import NetworkSettings
from stacks.settings.policy import PolicySettings
from stacks.settings.pool import PoolSettings
from stacks.settings.ray import RayShape
from stacks.settings.sharing import SharingProfile
from stacks.settings.types import Name, NonEmpty, ProjectId, Region, Zone, region_of


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
    """GPU metrics by NVIDIA's exporter. GKE's managed DCGM gives the same ones, so by default there is one of them."""
    node_feature_discovery: bool = True
    """Label nodes by their hardware; only a cluster that runs it already needs none."""
    validator: bool = True
    """Run a CUDA workload of the operator's own on every node before its GPUs are advertised."""


class OperatorsSettings(Settings):
    """What is installed on the cluster, beside what GKE brings."""

    kuberay: KubeRaySettings = KubeRaySettings()
    gpu: GpuOperatorSettings = GpuOperatorSettings()


class EnvironmentSettings(Settings):
    """One environment: `pulumi up` on its stack makes all of it.

    What refers to something else is checked in resolve.py, so that everything that is wrong is said at once.
    """

    project: ProjectId | None = None
    """Google Cloud project. Required, but for an existing cluster."""
    zone: Zone | None = None
    """Zone of a zonal cluster and of its nodes. Either this or `region` is required, but for an existing cluster."""
    region: Region | None = None
    """Region of a regional cluster, whose control plane survives the loss of a zone; `zones` says where its nodes are."""
    zones: list[Zone] = []
    """Zones of a regional cluster's nodes, where a pool does not name its own."""
    production: bool | None = None
    """It is a production environment, for which more policies hold. Default: the stack is `prod` or `production`, or its
    name begins with one of them and `-`."""
    labels: dict[NonEmpty, str] = {}
    """Labels of the cluster and its nodes in Google Cloud, for bills and owners."""
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$", examples=["USD"])] | None = None
    """Currency of the pools' `hourlyRate`."""
    cluster: ClusterSettings = ClusterSettings()
    network: NetworkSettings = NetworkSettings()
    operators: OperatorsSettings = OperatorsSettings()
    policies: PolicySettings = PolicySettings()
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

    def is_production(self, stack: str) -> bool:
        """Whether it is a production environment: as it says, else by its stack's name.

        Args:
            stack: the stack's name.
        """
        if self.production is not None:
            return self.production
        return stack.partition("-")[0] in ("prod", "production")

    @property
    def location(self) -> str:
        """Where the cluster is: its zone, or its region."""
        return self.zone or self.region or ""

    @property
    def in_region(self) -> str:
        """The region that everything is in."""
        return self.region or region_of(self.zone or "")

    def zones_of(self, pool: PoolSettings) -> tuple[str, ...]:
        """The zones of a pool's nodes, each once."""
        return tuple(dict.fromkeys(pool.zones or self.zones or ([self.zone] if self.zone else [])))
