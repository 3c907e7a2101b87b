"""A GKE node pool, with or without GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_gcp import container

from components.sharing.device_plugin import node_labels
from components.sharing.disturbance import of_labels
from stacks.settings.bounds import Bounds
from stacks.settings.pool import PoolSettings
from stacks.settings.pools import Pool

_IMAGE_TYPES = {"cos": "COS_CONTAINERD", "ubuntu": "UBUNTU_CONTAINERD"}
_TAINT_EFFECTS = {"NoSchedule": "NO_SCHEDULE", "PreferNoSchedule": "PREFER_NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}


@dataclass(frozen=True)
class NodePoolInputs:
    """What a node pool needs to know.

    Attributes:
        pool: machine type, size, labels, taints, and how its GPUs are shared.
        cluster: name of the cluster.
        zone: zone of the nodes.
        occupants: berths and clusters whose workers are on it.
    """

    pool: Pool
    cluster: pulumi.Input[str]
    zone: str
    occupants: Sequence[str] = ()


class NodePool(pulumi.ComponentResource):
    """Nodes of one machine type."""

    def __init__(self, name: str, inputs: NodePoolInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the pool.

        Args:
            name: the pool's name.
            inputs: settings and the cluster that it belongs to.
            opts: Pulumi's options.
        """
        super().__init__("berth:gke:NodePool", name, None, opts)
        settings = inputs.pool.settings

        def warn(change: pulumi.ResourceHookArgs) -> None:
            for line in of_labels(name, _labels(change.old_inputs), _labels(change.new_inputs), inputs.occupants):
                pulumi.log.warn(line)

        hook = pulumi.ResourceHook(f"{name}-sharing", warn, pulumi.ResourceHookOptions(on_dry_run=True))
        container.NodePool(
            name,
            name=name,
            cluster=inputs.cluster,
            location=inputs.zone,
            node_config=container.NodePoolNodeConfigArgs(
                machine_type=settings.machine_type,
                image_type=_IMAGE_TYPES[settings.node_image],
                disk_size_gb=settings.disk_size_gb,
                # What the GPU Operator reads from nodes is in the pool's config, so that nodes added later have it too.
                labels={**settings.labels, **node_labels(inputs.pool), **_rdma_labels(settings)},
                taints=[
                    container.NodePoolNodeConfigTaintArgs(
                        key=taint.key, value=taint.value, effect=_TAINT_EFFECTS[taint.effect]
                    )
                    for taint in settings.taints
                ],
                guest_accelerators=_accelerators(settings),
                gvnic=container.NodePoolNodeConfigGvnicArgs(enabled=True),
                workload_metadata_config=container.NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
                shielded_instance_config=container.NodePoolNodeConfigShieldedInstanceConfigArgs(
                    enable_secure_boot=True, enable_integrity_monitoring=True
                ),
                oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
            ),
            opts=pulumi.ResourceOptions(parent=self, hooks=pulumi.ResourceHookBinding(before_update=[hook])),
            **_network(settings),
            **_size(settings),
        )
        self.register_outputs({})


def _labels(inputs: Mapping[str, Any] | None) -> Mapping[str, str]:
    return dict(((inputs or {}).get("nodeConfig") or {}).get("labels") or {})


def _rdma_labels(settings: PoolSettings) -> dict[str, str]:
    return {"cloud.google.com/gke-networking-dra-driver": "true"} if settings.rdma == "managed" else {}


def _network(settings: PoolSettings) -> dict[str, Any]:
    """Managed DRANET: GKE makes the networks that the machine's NICs need.

    See docs.cloud.google.com/kubernetes-engine, "Allocate network resources by using managed DRANET".
    """
    if settings.rdma != "managed":
        return {}
    return {"network_config": container.NodePoolNetworkConfigArgs(accelerator_network_profile="auto")}


def _size(settings: PoolSettings) -> dict[str, Any]:
    if isinstance(settings.nodes, Bounds):
        bounds = settings.nodes
        return {
            "initial_node_count": bounds.min,
            "autoscaling": container.NodePoolAutoscalingArgs(
                total_min_node_count=bounds.min, total_max_node_count=bounds.max, location_policy="ANY"
            ),
        }
    return {"node_count": settings.nodes}


def _accelerators(settings: PoolSettings) -> list[container.NodePoolNodeConfigGuestAcceleratorArgs]:
    machine = settings.machine
    if not machine.gpus:
        return []
    return [
        container.NodePoolNodeConfigGuestAcceleratorArgs(
            type=machine.accelerator,
            count=machine.gpus,
            gpu_driver_installation_config=container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
                # With its own device plugin GKE also leaves the driver off; then Google's installer is run, or another.
                gpu_driver_version=(
                    "INSTALLATION_DISABLED" if settings.by_operator or settings.driver == "preinstalled" else "DEFAULT"
                )
            ),
        )
    ]
