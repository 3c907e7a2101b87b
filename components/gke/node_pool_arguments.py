"""Arguments of `gcp.container.NodePool`, from settings.

Names and values:
https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools
and Google's recipes for GPU clusters, GoogleCloudPlatform/cluster-toolkit
(modules/compute/gke-node-pool, examples/gke-a4). Reservations:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations; flex-start:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dws-flex-start-training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from berth.components.core.bounds import Bounds
from berth.components.gke.argument_patches.merging import with_patch
from berth.components.gke.arguments import NodeNetwork, NodePoolArguments, without_empty_values
from berth.components.gke.cluster_arguments import CLOUD_PLATFORM
from berth.components.gke.pool_settings import Capacity, PoolSettings, Taint
from berth.components.gke.provider_fields import NODE_POOL
from berth.components.hardware.names import GPU_RESOURCE, MANAGED_DRANET_LABEL
from berth.components.programs.lifetimes import parse_duration

if TYPE_CHECKING:
    import pulumi_gcp as gcp

IMAGE_TYPES = {"cos": "COS_CONTAINERD", "ubuntu": "UBUNTU_CONTAINERD"}

_TAINT_EFFECTS = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}

GPU_TAINT = Taint(key=GPU_RESOURCE, value="present", effect="NoSchedule")
"""Taint that keeps pods without GPUs off GPU nodes.

GKE sets it only on a pool that is created beside a pool without GPUs, and the next edit of `taints`
drops it, since the provider sends the whole list
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus, "Create a GPU node pool";
cluster-toolkit, modules/compute/gke-node-pool, sets it too)."""

RDMA_SYSCTLS = {
    "net.ipv4.tcp_rmem": "4096 87380 16777216",
    "net.ipv4.tcp_wmem": "4096 16384 16777216",
}
"""TCP buffers of nodes with RDMA NICs (cluster-toolkit's recipes for A3 Ultra and A4)."""

IGNORED_CHANGES = ["initialNodeCount"]
"""Argument that counts only when the pool is created. Each resize by the autoscaler or by hand
changes GKE's report of it, and a difference would replace the pool
(https://www.pulumi.com/registry/packages/gcp/api-docs/container/nodepool/#initialnodecount_python).
Other recipes ignore labels and local SSDs too; here the labels choose how GPUs are shared, and the
SSDs of a machine type are asked for in full, so that GKE reports the same number."""

_FLEX_START_LONGEST = "7d"
"""Longest time for which flex-start gives machines
(https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws)."""

_NO_RESERVATION: gcp.container.NodePoolNodeConfigReservationAffinityArgsDict = {
    "consume_reservation_type": "NO_RESERVATION"
}


@dataclass(frozen=True)
class NodePlace:
    """Place of a pool's nodes, and values of their environment."""

    project: str
    cluster: str
    location: str
    """Zone or region of the cluster."""
    zones: Sequence[str] = ()
    """Zones of the nodes; GKE chooses where there are none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels in Google Cloud, for bills and owners."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the Kubernetes nodes beside those of the pool's settings."""
    service_account: str | None = None
    """Account of the nodes; Compute Engine's default without one."""
    private: bool = True
    taint_gpus: bool = True
    """Whether nodes with GPUs are tainted; there must be others for pods without GPUs."""
    networks: Sequence[NodeNetwork] = ()
    """Further network interfaces of the nodes, in order."""
    workload_policy: str | None = None
    """Name of the policy that places the nodes, for machines that need one."""


def node_pool_arguments(settings: PoolSettings, place: NodePlace) -> NodePoolArguments:
    """Return the arguments of a node pool in snake case, except its name and cluster.

    The settings' own `arguments` are merged into them. The version is left to GKE's upgrades.
    """
    arguments: NodePoolArguments = {
        "location": place.location,
        "node_locations": sorted(place.zones) or None,
        "node_config": _node_config(settings, place),
        "network_config": _network_config(settings, place),
        "placement_policy": _placement(settings, place),
        "max_pods_per_node": settings.max_pods_per_node,
        **_size(settings, max(1, len(place.zones))),
        **_upkeep(settings),
    }
    return with_patch(without_empty_values(arguments), settings.arguments, NODE_POOL)


def _placement(
    settings: PoolSettings, place: NodePlace
) -> gcp.container.NodePoolPlacementPolicyArgsDict | None:
    if place.workload_policy is not None:
        return {"type": "COMPACT", "policy_name": place.workload_policy}
    return {"type": "COMPACT"} if settings.compact_placement else None


def _node_config(
    settings: PoolSettings, place: NodePlace
) -> gcp.container.NodePoolNodeConfigArgsDict:
    maintenance = settings.host_maintenance
    streams_images = settings.streams_images
    return {
        "machine_type": settings.machine_type,
        "image_type": IMAGE_TYPES[settings.node_image],
        "disk_size_gb": settings.disk_size_gb,
        "disk_type": settings.boot_disk or None,
        "labels": _node_labels(settings, place),
        "resource_labels": dict(place.labels),
        "taints": _taints(settings, place) or None,
        "guest_accelerators": _accelerators(settings),
        "gvnic": {"enabled": True},
        "gcfs_config": None if streams_images is None else {"enabled": streams_images},
        "secondary_boot_disks": _image_disks(settings) or None,
        "workload_metadata_config": {"mode": "GKE_METADATA"},
        "shielded_instance_config": {
            "enable_secure_boot": _boots_securely(settings),
            "enable_integrity_monitoring": True,
        },
        "linux_node_config": {"sysctls": _sysctls(settings)},
        "service_account": place.service_account,
        "oauth_scopes": [CLOUD_PLATFORM],
        "host_maintenance_policy": (
            {"maintenance_interval": maintenance.upper().replace("-", "_")} if maintenance else None
        ),
        **_local_ssds(settings),
        **_machine_origin(settings.capacity, place.project),
    }


def _sysctls(settings: PoolSettings) -> dict[str, str]:
    """Return kernel settings: those of the settings, and those for RDMA."""
    # Google's blueprint for machines of an NVLink domain (A4X) has none for RDMA.
    tuned = settings.machine.rdma and not settings.machine.series.accelerator_topology
    return {**RDMA_SYSCTLS, **settings.sysctls} if tuned else dict(settings.sysctls)


def _boots_securely(settings: PoolSettings) -> bool:
    if settings.secure_boot is not None:
        return settings.secure_boot
    # The GPU Operator builds its driver on the node, so the driver is not signed for the node's
    # firmware.
    return settings.driver != "operator"


def _node_labels(settings: PoolSettings, place: NodePlace) -> dict[str, str]:
    """Return the labels of the Kubernetes nodes.

    Labels that drivers and operators read are in the pool's config, so that nodes added later have
    them too.
    """
    labels = {**settings.labels, **place.node_labels}
    if settings.rdma == "managed":
        labels[MANAGED_DRANET_LABEL] = "true"
    return labels


def _image_disks(
    settings: PoolSettings,
) -> list[gcp.container.NodePoolNodeConfigSecondaryBootDiskArgsDict]:
    return [
        {"disk_image": image, "mode": "CONTAINER_IMAGE_CACHE"} for image in settings.image_disks
    ]


def _taints(
    settings: PoolSettings, place: NodePlace
) -> list[gcp.container.NodePoolNodeConfigTaintArgsDict]:
    """Return taints of a pool's nodes: those of its settings, and GKE's own for GPUs."""
    taints = list(settings.taints)
    has_gpu_taint = any(
        (taint.key, taint.effect) == (GPU_TAINT.key, GPU_TAINT.effect) for taint in taints
    )
    if settings.machine.gpus and place.taint_gpus and not has_gpu_taint:
        taints.append(GPU_TAINT)
    return [
        {"key": taint.key, "value": taint.value, "effect": _TAINT_EFFECTS[taint.effect]}
        for taint in taints
    ]


def _accelerators(
    settings: PoolSettings,
) -> list[gcp.container.NodePoolNodeConfigGuestAcceleratorArgsDict] | None:
    machine = settings.machine
    if not machine.gpus:
        return None
    # Without its own device plugin GKE also leaves the driver off; then Google's installer is run,
    # or another.
    by_gke = not settings.by_operator and not settings.by_dra and settings.driver != "preinstalled"
    version = (settings.driver_version or "default").upper() if by_gke else "INSTALLATION_DISABLED"
    return [
        {
            "type": machine.gpu.accelerator,
            "count": machine.gpus,
            "gpu_driver_installation_config": {"gpu_driver_version": version},
        }
    ]


def _network_config(
    settings: PoolSettings, place: NodePlace
) -> gcp.container.NodePoolNetworkConfigArgsDict:
    """Return networks that GKE creates for the NICs (managed DRANET), existing ones, or none."""
    return {
        "enable_private_nodes": place.private,
        "accelerator_network_profile": "auto" if settings.rdma == "managed" else None,
        "additional_node_network_configs": (
            [
                {"network": network["network"], "subnetwork": network["subnetwork"]}
                for network in place.networks
            ]
            if settings.rdma == "networks"
            else None
        ),
    }


def _local_ssds(settings: PoolSettings) -> gcp.container.NodePoolNodeConfigArgsDict:
    """Return the local SSDs of the settings, or those that the machine type always has."""
    if not settings.local_ssd_count:
        return {}
    if settings.ephemeral_ssds:
        return {"ephemeral_storage_local_ssd_config": {"local_ssd_count": settings.local_ssd_count}}
    return {"local_nvme_ssd_block_config": {"local_ssd_count": settings.local_ssd_count}}


def _machine_origin(capacity: Capacity, project: str) -> gcp.container.NodePoolNodeConfigArgsDict:
    """Return the node config's arguments for the origin of machines; none on demand."""
    match capacity.kind:
        case "reservation":
            return {
                "reservation_affinity": {
                    "consume_reservation_type": "SPECIFIC_RESERVATION",
                    "key": "compute.googleapis.com/reservation-name",
                    "values": [_reservation_path(capacity, project)],
                }
            }
        case "flex-start":
            seconds = parse_duration(capacity.max_run_duration or _FLEX_START_LONGEST)
            return {
                "flex_start": True,
                "max_run_duration": f"{seconds}s",
                "reservation_affinity": _NO_RESERVATION,
            }
        case "spot":
            return {"spot": True, "reservation_affinity": _NO_RESERVATION}
        case "on-demand":
            return {}


def _reservation_path(capacity: Capacity, project: str) -> str:
    """Return the path of a reservation, of its block, or of the block's sub-block."""
    path = f"projects/{capacity.project or project}/reservations/{capacity.reservation}"
    if capacity.block:
        path = f"{path}/reservationBlocks/{capacity.block}"
    if capacity.sub_block:
        path = f"{path}/reservationSubBlocks/{capacity.sub_block}"
    return path


def _size(settings: PoolSettings, zones: int) -> NodePoolArguments:
    """Return the number of nodes, or the autoscaler's bounds.

    GKE counts fixed and initial sizes for each zone, and bounds for all zones together.

    Args:
        settings: settings of the pool.
        zones: number of the pool's zones; at least one.
    """
    if not isinstance(settings.nodes, Bounds):
        return {"node_count": settings.nodes // zones}
    capacity = settings.capacity
    bounds = settings.nodes
    # A pool below its minimum stays there until a pod needs a node, so it begins with that many.
    initial = -(-bounds.min // zones)
    if initial * zones > bounds.max:
        initial = bounds.min // zones
    return {
        "initial_node_count": 0 if capacity.kind == "flex-start" else initial,
        "autoscaling": {
            "total_min_node_count": bounds.min,
            "total_max_node_count": bounds.max,
            # Where machines are short: any zone that has them, and reservations first. Else all
            # zones alike
            # (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler#location-policy).
            "location_policy": "BALANCED" if capacity.kind == "on-demand" else "ANY",
        },
    }


def _upkeep(settings: PoolSettings) -> NodePoolArguments:
    """Return how GKE repairs and upgrades nodes."""
    flex_start = settings.capacity.kind == "flex-start"
    repair = not flex_start if settings.auto_repair is None else settings.auto_repair
    # A release channel upgrades nodes too: without auto_upgrade GKE refuses the pool.
    arguments: NodePoolArguments = {"management": {"auto_repair": repair, "auto_upgrade": True}}
    if flex_start:
        # GKE's own strategy for short-lived machines (SHORT_LIVED), for which the provider has no
        # value.
        return arguments
    arguments["upgrade_settings"] = {
        "strategy": "SURGE",
        "max_surge": settings.max_surge,
        "max_unavailable": settings.max_unavailable,
    }
    return arguments
