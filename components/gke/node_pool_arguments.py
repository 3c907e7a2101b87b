"""Arguments of `gcp.container.NodePool`, from settings, and what brings pods onto its nodes.

Names and values:
https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools
and Google's recipes for GPU clusters, GoogleCloudPlatform/cluster-toolkit
(modules/compute/gke-node-pool, examples/gke-a4). Reservations:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations; flex-start:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dws-flex-start-training.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from berth.components.core.bounds import Bounds
from berth.components.gke.arguments import NodeNetwork, NodePoolArguments, given
from berth.components.gke.cluster_arguments import CLOUD_PLATFORM
from berth.components.gke.pool_settings import Capacity, PoolSettings, Taint
from berth.components.hardware.names import (
    ARCHITECTURE,
    GPU_RESOURCE,
    MANAGED_DRANET_LABEL,
    POOL_LABEL,
)
from berth.components.programs.lifetimes import parse_duration

if TYPE_CHECKING:
    import pulumi
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
    workload_policy: pulumi.Input[str] | None = None
    """Name of the policy that places the nodes, for machines that need one."""


def node_pool_arguments(settings: PoolSettings, place: NodePlace) -> NodePoolArguments:
    """Return the arguments of a node pool in snake case, except its name and cluster.

    The version is left to GKE's upgrades.
    """
    arguments: NodePoolArguments = {
        "location": place.location,
        "node_locations": sorted(place.zones) or None,
        "node_config": _node_config(settings, place),
        "network_config": _network_config(settings, place),
        "placement_policy": _placement(settings, place),
        "max_pods_per_node": settings.max_pods_per_node,
        **_size(settings, len(place.zones)),
        **_upkeep(settings),
    }
    return given(arguments)


def _placement(
    settings: PoolSettings, place: NodePlace
) -> gcp.container.NodePoolPlacementPolicyArgsDict | None:
    if place.workload_policy is not None:
        return {"type": "COMPACT", "policy_name": place.workload_policy}
    return {"type": "COMPACT"} if settings.compact_placement else None


def _node_config(
    settings: PoolSettings, place: NodePlace
) -> gcp.container.NodePoolNodeConfigArgsDict:
    # Google's blueprint for A4X sets none.
    tuned = settings.machine.rdma and not settings.machine.series.accelerator_topology
    sysctls = {**(RDMA_SYSCTLS if tuned else {}), **settings.sysctls}
    secure_boot = (
        settings.driver != "operator" if settings.secure_boot is None else settings.secure_boot
    )
    taints: list[gcp.container.NodePoolNodeConfigTaintArgsDict] = [
        {"key": taint.key, "value": taint.value, "effect": _TAINT_EFFECTS[taint.effect]}
        for taint in _taints(settings, place)
    ]
    # Labels that drivers and operators read are in the pool's config, so that nodes added later
    # have them too.
    labels = {
        **settings.labels,
        **place.node_labels,
        **({MANAGED_DRANET_LABEL: "true"} if settings.rdma == "managed" else {}),
    }
    return {
        "machine_type": settings.machine_type,
        "image_type": IMAGE_TYPES[settings.node_image],
        "disk_size_gb": settings.disk_size_gb,
        "disk_type": settings.boot_disk or None,
        "labels": labels,
        "resource_labels": dict(place.labels),
        "taints": taints or None,
        "guest_accelerators": _accelerators(settings),
        "gvnic": {"enabled": True},
        "gcfs_config": None
        if settings.streams_images is None
        else {"enabled": settings.streams_images},
        "secondary_boot_disks": [
            {"disk_image": image, "mode": "CONTAINER_IMAGE_CACHE"} for image in settings.image_disks
        ]
        or None,
        "workload_metadata_config": {"mode": "GKE_METADATA"},
        # The GPU Operator builds its driver on the node, so the driver is not signed for the node's
        # firmware.
        "shielded_instance_config": {
            "enable_secure_boot": secure_boot,
            "enable_integrity_monitoring": True,
        },
        "linux_node_config": {"sysctls": sysctls},
        "service_account": place.service_account,
        "oauth_scopes": [CLOUD_PLATFORM],
        "host_maintenance_policy": (
            {"maintenance_interval": settings.host_maintenance.upper().replace("-", "_")}
            if settings.host_maintenance
            else None
        ),
        **_local_ssds(settings),
        **_machine(settings.capacity, place.project),
    }


def _taints(settings: PoolSettings, place: NodePlace) -> list[Taint]:
    """Taints of a pool's nodes: those of its settings, and GKE's own for GPUs."""
    gpus = bool(settings.machine.gpus) and place.taint_gpus
    given = any(
        (taint.key, taint.effect) == (GPU_TAINT.key, GPU_TAINT.effect) for taint in settings.taints
    )
    return [*settings.taints, *([GPU_TAINT] if gpus and not given else [])]


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


def _machine(capacity: Capacity, project: str) -> gcp.container.NodePoolNodeConfigArgsDict:
    """Return the node config's arguments for the origin of machines; none on demand."""
    match capacity.kind:
        case "reservation":
            path = f"projects/{capacity.project or project}/reservations/{capacity.reservation}"
            if capacity.block:
                path = f"{path}/reservationBlocks/{capacity.block}"
            return {
                "reservation_affinity": {
                    "consume_reservation_type": "SPECIFIC_RESERVATION",
                    "key": "compute.googleapis.com/reservation-name",
                    "values": [path],
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


def _size(settings: PoolSettings, zones: int) -> NodePoolArguments:
    """Return the number of nodes, or the autoscaler's bounds.

    GKE counts fixed and initial sizes for each zone, and bounds for all zones together.
    """
    capacity, zones = settings.capacity, max(1, zones)
    if not isinstance(settings.nodes, Bounds):
        return {"node_count": settings.nodes // zones}
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


def tolerations(pool: PoolSettings) -> list[dict[str, str]]:
    """Return tolerations of a pool's own taints, and of those that GKE sets on its nodes."""
    tolerated = [
        {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
        for taint in pool.taints
    ]
    if pool.machine.gpus:
        tolerated.append({"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"})
    if pool.machine.series.arm64:
        tolerated.append(
            {"key": ARCHITECTURE, "operator": "Equal", "value": "arm64", "effect": "NoSchedule"}
        )
    return tolerated


def pool_affinity(pools: Iterable[str]) -> dict[str, Any]:
    """Return the affinity of a pod that runs only on nodes of the named pools."""
    expression = {"key": POOL_LABEL, "operator": "In", "values": sorted(pools)}
    terms = [{"matchExpressions": [expression]}]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
