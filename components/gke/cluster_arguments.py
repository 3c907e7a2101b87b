"""What a GKE cluster is asked for: from settings to plain arguments of `gcp.container.Cluster`. Pure.

Names and values: https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters, and
as defaults for GPU clusters GoogleCloudPlatform/cluster-toolkit, modules/scheduler/gke-cluster.
"""

from __future__ import annotations

from typing import Any

from berth.components.gke.cluster_settings import ClusterSettings
from berth.components.gke.settings import GkeSettings

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
"""What a node may do is its service account's business: narrower scopes would only hide it."""

IGNORED_CHANGES = ["nodeConfig"]
"""It describes the default pool, which is gone. The provider reads it back from the first other pool, and most differences
would replace the cluster (https://github.com/hashicorp/terraform-provider-google/issues/12070)."""


def cluster_arguments(settings: GkeSettings) -> dict[str, Any]:
    """The arguments of the cluster, except its name and networks.

    What is left to GKE is left out: the version beyond `version`, the range of the control plane, and the security posture
    dashboard, which is on in its free form. No Kubernetes beta API is turned on: what berth asks of the API server is
    stable in every version that its features need.

    Args:
        settings: of the whole environment.

    Returns:
        Arguments in snake case.
    """
    cluster = settings.cluster
    arguments = {
        "location": settings.location,
        "node_locations": _node_locations(settings),
        "networking_mode": "VPC_NATIVE",
        # Network policies are enforced by Dataplane V2; it can only be chosen when the cluster is made.
        "datapath_provider": "ADVANCED_DATAPATH",
        "enable_multi_networking": _multi_networking(settings),
        "release_channel": {"channel": cluster.release_channel},
        "min_master_version": cluster.version,
        "workload_identity_config": {"workload_pool": f"{settings.project}.svc.id.goog"},
        # Every pool is one of the settings. GKE makes none without a first one, which lives for a minute.
        "remove_default_node_pool": True,
        "initial_node_count": 1,
        "node_config": _first_node(cluster),
        "private_cluster_config": _private(cluster),
        "master_authorized_networks_config": _authorized_networks(cluster),
        "addons_config": _addons(settings),
        "enable_shielded_nodes": True,
        "logging_config": {"enable_components": [_LOGS.get(each, each) for each in cluster.logging]},
        "monitoring_config": {
            "enable_components": ["SYSTEM_COMPONENTS", *(["DCGM"] if cluster.managed_dcgm else [])],
            "managed_prometheus": {"enabled": cluster.managed_prometheus},
        },
        "resource_labels": dict(settings.labels) or None,
        "deletion_protection": cluster.deletion_protection,
    }
    return {key: value for key, value in arguments.items() if value is not None}


# The one component that goes by another name in the API.
_LOGS = {"SYSTEM": "SYSTEM_COMPONENTS"}


def _node_locations(settings: GkeSettings) -> list[str] | None:
    """Zones of a regional cluster's nodes, unless a pool says otherwise; a zonal one has its own."""
    return sorted(settings.zones) or None if settings.region else None


def _multi_networking(settings: GkeSettings) -> bool | None:
    """Whether nodes can have further networks: where a pool's nodes have some, unless the settings say so."""
    if settings.cluster.multi_networking is not None:
        return settings.cluster.multi_networking
    return True if any(pool.rdma == "networks" for pool in settings.pools.values()) else None


def _first_node(cluster: ClusterSettings) -> dict[str, Any]:
    """The first pool's node, so that policies of the organization and a project without default account let it be."""
    node: dict[str, Any] = {
        "oauth_scopes": [CLOUD_PLATFORM],
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
        "workload_metadata_config": {"mode": "GKE_METADATA"},
    }
    if cluster.node_service_account:
        node["service_account"] = cluster.node_service_account
    return node


def _private(cluster: ClusterSettings) -> dict[str, Any]:
    """Nodes and control plane with or without public addresses. GKE finds the control plane's range itself.

    Since GKE 1.29 it uses Private Service Connect instead of a peered network
    (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/network-isolation).
    """
    return {"enable_private_nodes": cluster.private_nodes, "enable_private_endpoint": cluster.private_endpoint}


def _authorized_networks(cluster: ClusterSettings) -> dict[str, Any] | None:
    """Networks from which the control plane can be reached; a private endpoint has such a list, be it empty.

    Without a list in the settings nothing is sent, so that a list that is in force stays. A list of
    everywhere in its place would open control planes that somebody closed outside berth.
    """
    if not cluster.authorized_networks and not cluster.private_endpoint:
        return None
    blocks = [{"display_name": name, "cidr_block": cidr} for name, cidr in sorted(cluster.authorized_networks.items())]
    return {"cidr_blocks": blocks}


def _addons(settings: GkeSettings) -> dict[str, Any] | None:
    """GKE's own Ray operator: on instead of the chart, off beside it. Logs and metrics go where the cluster's go."""
    if settings.ray_addon is None:
        return None
    if not settings.ray_addon:
        return {"ray_operator_configs": [{"enabled": False}]}
    operator = {
        "enabled": True,
        "ray_cluster_logging_config": {"enabled": "WORKLOADS" in settings.cluster.logging},
        "ray_cluster_monitoring_config": {"enabled": settings.cluster.managed_prometheus},
    }
    return {"ray_operator_configs": [operator]}
