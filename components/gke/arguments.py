"""Types of the arguments that berth gives to pulumi_gcp's classes.

They stand here as types only: settings are checked without pulumi_gcp, whose import takes a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    import pulumi_gcp as gcp

Arguments = TypeVar("Arguments", bound=Mapping[str, object])


class ClusterArguments(TypedDict, total=False):
    """Arguments of `gcp.container.Cluster` that berth sets, except its name and networks."""

    location: str
    node_locations: list[str] | None
    networking_mode: str
    datapath_provider: str
    enable_multi_networking: bool | None
    release_channel: gcp.container.ClusterReleaseChannelArgsDict
    min_master_version: str | None
    workload_identity_config: gcp.container.ClusterWorkloadIdentityConfigArgsDict
    remove_default_node_pool: bool
    initial_node_count: int
    node_config: gcp.container.ClusterNodeConfigArgsDict
    private_cluster_config: gcp.container.ClusterPrivateClusterConfigArgsDict
    control_plane_endpoints_config: gcp.container.ClusterControlPlaneEndpointsConfigArgsDict | None
    master_authorized_networks_config: (
        gcp.container.ClusterMasterAuthorizedNetworksConfigArgsDict | None
    )
    authenticator_groups_config: gcp.container.ClusterAuthenticatorGroupsConfigArgsDict | None
    database_encryption: gcp.container.ClusterDatabaseEncryptionArgsDict | None
    addons_config: gcp.container.ClusterAddonsConfigArgsDict | None
    secret_sync_config: gcp.container.ClusterSecretSyncConfigArgsDict | None
    enable_shielded_nodes: bool
    logging_config: gcp.container.ClusterLoggingConfigArgsDict
    monitoring_config: gcp.container.ClusterMonitoringConfigArgsDict
    cost_management_config: gcp.container.ClusterCostManagementConfigArgsDict
    resource_labels: dict[str, str] | None
    deletion_protection: bool
    maintenance_policy: gcp.container.ClusterMaintenancePolicyArgsDict | None


class NodeNetwork(TypedDict):
    """Further network interface of a node, by names, or by paths in another project.

    They are plain text: the provider's comparison of a pool (nodePoolAcceleratorNetworkProfile-
    CustomizeDiff in resource_container_node_pool.go) ends the plugin where the list is unknown, as
    it is while a subnetwork that it has an output of is replaced.
    """

    network: str
    subnetwork: str


class NodePoolArguments(TypedDict, total=False):
    """Arguments of `gcp.container.NodePool` that berth sets, except its name and cluster."""

    location: str
    node_locations: list[str] | None
    node_config: gcp.container.NodePoolNodeConfigArgsDict
    network_config: gcp.container.NodePoolNetworkConfigArgsDict
    placement_policy: gcp.container.NodePoolPlacementPolicyArgsDict | None
    max_pods_per_node: int | None
    node_count: int
    initial_node_count: int
    autoscaling: gcp.container.NodePoolAutoscalingArgsDict
    management: gcp.container.NodePoolManagementArgsDict
    upgrade_settings: gcp.container.NodePoolUpgradeSettingsArgsDict


def without_empty_values(arguments: Arguments) -> Arguments:
    """Return arguments without values that are None, and without blocks that have nothing else.

    The provider would get them as nulls, and an empty block asks for defaults.
    """
    present: dict[str, object] = {}
    for key, value in arguments.items():
        inner = without_empty_values(value) if isinstance(value, dict) else value
        if inner not in (None, {}):
            present[key] = inner
    return cast("Arguments", present)
