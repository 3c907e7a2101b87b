"""Arguments of `gcp.container.Cluster`, from settings.

Names and values:
https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters,
and as defaults for GPU clusters GoogleCloudPlatform/cluster-toolkit, modules/scheduler/gke-cluster.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from berth.components.gke.argument_patches.merging import with_patch
from berth.components.gke.arguments import ClusterArguments, without_empty_values
from berth.components.gke.cluster_settings import ClusterSettings, Exclusion, Maintenance
from berth.components.gke.provider_fields import CLUSTER
from berth.components.gke.settings import GkeSettings
from berth.components.gke.versions import parse_gke_version

if TYPE_CHECKING:
    import pulumi_gcp as gcp

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
"""Scope of every node. Its service account limits what a node may do; narrower scopes would hide
that."""

IGNORED_CHANGES = ["nodeConfig"]
"""Argument that describes the default pool, which is gone. The provider reads it back from the
first other pool, and most differences would replace the cluster
(https://github.com/hashicorp/terraform-provider-google/issues/12070)."""

DEFAULT_METRICS = {
    "STORAGE": "1.29.2-gke.2000",
    "HPA": "1.29.2-gke.2000",
    "POD": "1.29.2-gke.2000",
    "DAEMONSET": "1.29.2-gke.2000",
    "DEPLOYMENT": "1.29.2-gke.2000",
    "STATEFULSET": "1.29.2-gke.2000",
    "CADVISOR": "1.29.3-gke.1093000",
    "KUBELET": "1.29.3-gke.1093000",
    "JOBSET": "1.32.1-gke.1357001",
}
"""Packages of metrics that new clusters have by default beside the system's and DCGM's, and since
when. They need managed collection.

They are listed, since a list that is left out would switch them off: beside `managedPrometheus` the
provider sends an empty list then, and an empty one "would disable all monitoring"
(MonitoringComponentConfig of the API). Sources: "Collect and view cAdvisor/Kubelet metrics" and
"Collect and view kube state metrics"
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cadvisor-kubelet-metrics), and for
JobSet the provider's page of the cluster."""

# The one component that has another name in the API.
_LOGS = {"SYSTEM": "SYSTEM_COMPONENTS"}


def cluster_arguments(settings: GkeSettings, node_account: str | None = None) -> ClusterArguments:
    """Return the arguments of the cluster in snake case, except its name and networks.

    The settings' own `arguments` are merged into them.

    Left to GKE are the version beyond `version`, the range of the control plane, and the security
    posture dashboard, whose fields are deprecated. No Kubernetes beta API is on: berth uses only
    APIs that are stable in every version that its features need. Without a value in the settings
    nothing is sent of endpoints, networks, a group or key, and add-ons, so what is in force stays;
    but another endpoint is sent with the authorized networks that the state has, so that those that
    only GKE knows are cleared.

    Args:
        settings: settings of the environment.
        node_account: address of the nodes' service account; None for Compute Engine's default.
    """
    cluster = settings.cluster
    arguments: ClusterArguments = {
        "location": settings.location,
        # Zones of a regional cluster's nodes, unless a pool names its own; a zonal one has its own.
        "node_locations": sorted(settings.zones) or None if settings.region else None,
        "networking_mode": "VPC_NATIVE",
        # Dataplane V2 enforces network policies; it can only be chosen when the cluster is created.
        "datapath_provider": "ADVANCED_DATAPATH",
        "enable_multi_networking": _multi_networking(settings),
        "release_channel": {"channel": cluster.release_channel},
        "min_master_version": cluster.version,
        "maintenance_policy": _maintenance(cluster.maintenance) if cluster.maintenance else None,
        "workload_identity_config": {"workload_pool": f"{settings.project}.svc.id.goog"},
        # Every pool is one of the settings. GKE creates no cluster without a first pool, which
        # lives for a minute.
        "remove_default_node_pool": True,
        "initial_node_count": 1,
        "node_config": _first_nodes(node_account),
        # GKE finds the control plane's range itself: since 1.29 it uses Private Service Connect
        # instead of a peered network
        # (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/network-isolation).
        "private_cluster_config": {
            "enable_private_nodes": cluster.private_nodes,
            "enable_private_endpoint": cluster.private_endpoint,
        },
        "control_plane_endpoints_config": {
            "dns_endpoint_config": {"allow_external_traffic": cluster.dns_endpoint},
            "ip_endpoints_config": {"enabled": cluster.ip_endpoint},
        },
        "master_authorized_networks_config": _authorized_networks(cluster),
        "addons_config": _addons(settings),
        "secret_sync_config": _secret_sync(settings),
        "enable_shielded_nodes": True,
        "logging_config": {
            "enable_components": [_LOGS.get(component, component) for component in cluster.logging]
        },
        "monitoring_config": {
            "enable_components": _metrics(cluster),
            "managed_prometheus": {"enabled": cluster.managed_prometheus},
        },
        "cost_management_config": {"enabled": cluster.cost_allocation},
        "resource_labels": dict(settings.labels),
        "deletion_protection": cluster.deletion_protection,
    }
    if cluster.security_group:
        arguments["authenticator_groups_config"] = {"security_group": cluster.security_group}
    if cluster.secrets_encryption_key:
        arguments["database_encryption"] = {
            "state": "ENCRYPTED",
            "key_name": cluster.secrets_encryption_key,
        }
    return with_patch(without_empty_values(arguments), cluster.arguments, CLUSTER)


def _metrics(cluster: ClusterSettings) -> list[str]:
    """Return the packages of metrics that GKE collects: its defaults, as far as they are asked for.

    Left out are those that the cluster's `version` does not have.
    """
    packages = ["SYSTEM_COMPONENTS"]
    if cluster.managed_prometheus:
        version = parse_gke_version(cluster.version) if cluster.version else None
        packages += [
            name
            for name, since in DEFAULT_METRICS.items()
            if version is None or version.at_least(parse_gke_version(since))
        ]
    if cluster.managed_dcgm:
        packages.append("DCGM")
    return packages


def _multi_networking(settings: GkeSettings) -> bool | None:
    """Return whether multi-networking is on; None leaves it as it is."""
    if settings.cluster.multi_networking is None and settings.pools_with_rdma("networks"):
        return True
    return settings.cluster.multi_networking


def _first_nodes(node_account: str | None) -> gcp.container.ClusterNodeConfigArgsDict:
    """Return the config of the first pool, in a form that policies of organizations accept."""
    return {
        "oauth_scopes": [CLOUD_PLATFORM],
        "shielded_instance_config": {
            "enable_secure_boot": True,
            "enable_integrity_monitoring": True,
        },
        "workload_metadata_config": {"mode": "GKE_METADATA"},
        "service_account": node_account or None,
    }


def _addons(settings: GkeSettings) -> gcp.container.ClusterAddonsConfigArgsDict:
    """Return the add-ons that the settings switch on or off."""
    addons: gcp.container.ClusterAddonsConfigArgsDict = {}
    if settings.ray_addon is not None:
        addons["ray_operator_configs"] = [_ray_operator(settings)]
    gcs_fuse = settings.addon("gcs_fuse")
    if gcs_fuse is not None:
        addons["gcs_fuse_csi_driver_config"] = {"enabled": gcs_fuse}
    filestore = settings.addon("filestore")
    if filestore is not None:
        addons["gcp_filestore_csi_driver_config"] = {"enabled": filestore}
    return addons


def _secret_sync(
    settings: GkeSettings,
) -> gcp.container.ClusterSecretSyncConfigArgsDict | None:
    """Return the state of the synchronization with Secret Manager, which follows new versions."""
    secret_sync = settings.addon("secret_sync")
    if secret_sync is None:
        return None
    return {
        "enabled": secret_sync,
        "rotation_config": {"enabled": True} if secret_sync else None,
    }


def _authorized_networks(
    cluster: ClusterSettings,
) -> gcp.container.ClusterMasterAuthorizedNetworksConfigArgsDict | None:
    """Return the networks that reach the control plane; a private endpoint always has a list.

    A default of everywhere would open control planes that somebody closed outside of berth.
    """
    if not cluster.authorized_networks and not cluster.private_endpoint:
        return None
    networks = sorted(cluster.authorized_networks.items())
    return {"cidr_blocks": [{"display_name": name, "cidr_block": cidr} for name, cidr in networks]}


def _maintenance(settings: Maintenance) -> gcp.container.ClusterMaintenancePolicyArgsDict:
    """Return GKE's maintenance policy; the provider takes exclusions only beside a window."""
    return {
        "daily_maintenance_window": {"start_time": settings.start},
        "maintenance_exclusions": [
            _exclusion(name, exclusion) for name, exclusion in sorted(settings.exclusions.items())
        ],
    }


def _exclusion(
    name: str, exclusion: Exclusion
) -> gcp.container.ClusterMaintenancePolicyMaintenanceExclusionArgsDict:
    without_end = None if exclusion.end else "UNTIL_END_OF_SUPPORT"
    return {
        "exclusion_name": name,
        "start_time": _utc(exclusion.start),
        "end_time": _utc(exclusion.end) if exclusion.end else None,
        "exclusion_options": {"scope": exclusion.scope, "end_time_behavior": without_end},
    }


def _utc(time: datetime) -> str:
    """Return a time as GKE reports it; in another form it would be a difference for ever."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ray_operator(
    settings: GkeSettings,
) -> gcp.container.ClusterAddonsConfigRayOperatorConfigArgsDict:
    """Return the state of GKE's own Ray operator; its logs and metrics go with the cluster's."""
    if not settings.ray_addon:
        return {"enabled": False}
    return {
        "enabled": True,
        "ray_cluster_logging_config": {"enabled": "WORKLOADS" in settings.cluster.logging},
        "ray_cluster_monitoring_config": {"enabled": settings.cluster.managed_prometheus},
    }
