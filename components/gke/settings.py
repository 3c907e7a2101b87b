"""Settings of an environment in Google Cloud: its place, cluster, networks and node pools."""

from typing import Annotated, Literal

from pydantic import Field

from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty, ProjectId, Region, Zone, region_of
from berth.components.gke.cluster_settings import ClusterSettings
from berth.components.gke.network_settings import NetworkSettings
from berth.components.gke.pool_settings import PoolSettings

Addon = Literal["gcs_fuse", "filestore", "secret_sync"]
"""Add-on of GKE that something in the settings may use, by the cluster's setting for it."""


class GkeSettings(Settings):
    """A GKE cluster with its networks and node pools."""

    project: Annotated[ProjectId | None, Field(examples=["your-project"])] = None
    """Google Cloud project. Required, except with an existing cluster."""
    zone: Annotated[Zone | None, Field(examples=["us-central1-b"])] = None
    """Zone of a zonal cluster and of its nodes. Either this or `region` is required, except with an
    existing cluster."""
    region: Annotated[Region | None, Field(examples=["us-central1"])] = None
    """Region of a regional cluster, whose control plane survives the loss of a zone; `zones` lists
    the zones of its nodes."""
    zones: Annotated[list[Zone], Field(examples=[["us-central1-a", "us-central1-b"]])] = []
    """Zones of a regional cluster's nodes, for pools that do not name their own."""
    labels: Annotated[
        dict[NonEmpty, str], Field(examples=[{"owner": "ml-platform", "cost-center": "research"}])
    ] = {}
    """Labels of the cluster and its nodes in Google Cloud, for bills and owners."""
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$", examples=["USD"])] | None = None
    """Currency of the pools' `hourlyRate`."""
    cluster: Annotated[ClusterSettings, Field(examples=[{"releaseChannel": "STABLE"}])] = (
        ClusterSettings()
    )
    network: Annotated[NetworkSettings, Field(examples=[{"cidr": "10.64.0.0/13"}])] = (
        NetworkSettings()
    )
    pools: Annotated[
        dict[Name, PoolSettings],
        Field(examples=[{"cpu": {"machineType": "n2-standard-16", "nodes": 2}}], min_length=1),
    ]
    """Node pools by name."""

    @property
    def location(self) -> str:
        """Location of the cluster: its zone or its region."""
        return self.zone or self.region or ""

    @property
    def in_region(self) -> str:
        """Region of all resources."""
        return self.region or region_of(self.zone or "")

    @property
    def ray_addon(self) -> bool | None:
        """Whether GKE's own Ray operator is on; None leaves it as it is."""
        return None

    def addon(self, name: Addon) -> bool | None:
        """Whether an add-on of GKE is on; None leaves it as it is."""
        switch: bool | None = getattr(self.cluster, name)
        return switch

    def zones_of(self, pool: PoolSettings) -> tuple[str, ...]:
        """Zones of a pool's nodes, without duplicates."""
        return tuple(dict.fromkeys(pool.zones or self.zones or ([self.zone] if self.zone else [])))

    @property
    def rdma_zones(self) -> list[str]:
        """Zones of the pools whose nodes need a second network and an RDMA network."""
        zones: set[str] = set()
        for name in self.pools_with_rdma("networks"):
            zones.update(self.zones_of(self.pools[name]))
        return sorted(zones)

    def pools_with_rdma(self, way: str) -> list[str]:
        """Names of the pools with this value of `rdma`."""
        return [name for name, pool in self.pools.items() if pool.rdma == way]
