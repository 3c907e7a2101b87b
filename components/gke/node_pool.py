"""A GKE node pool, with or without GPUs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pulumi
import pulumi_gcp as gcp

from berth.components.core.types import region_of
from berth.components.gke.errors.failed_pool import FailedPool
from berth.components.gke.errors.hook import error_hook
from berth.components.gke.names import resource_name
from berth.components.gke.node_pool_arguments import IGNORED_CHANGES, NodePlace, node_pool_arguments
from berth.components.gke.pool_settings import PoolSettings

Labels = Mapping[str, str]
"""Labels of a pool's nodes."""

TIMEOUTS = pulumi.CustomTimeouts(update="6h")
"""Timeout of updates. The provider's own two hours end before GKE has replaced the nodes of a large
GPU pool: it replaces one at a time, with up to an hour for each to drain."""


@dataclass(frozen=True)
class NodePoolInputs:
    """Inputs of a node pool."""

    settings: PoolSettings
    cluster: pulumi.Input[str]
    place: NodePlace
    warn: Callable[[Labels, Labels], Sequence[str]] = lambda _before, _after: ()
    """Warnings of an update, from the node labels before and after it."""
    subnetworks: Sequence[pulumi.Resource] = ()
    """Subnetworks of the nodes' further interfaces: the pool is replaced with them."""
    written: str = ""
    """File and line of the settings, where known."""


class NodePool(pulumi.ComponentResource):
    """Nodes of one machine type."""

    def __init__(
        self, name: str, inputs: NodePoolInputs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("berth:gke:NodePool", name, None, opts)
        settings = inputs.settings
        place = inputs.place

        def warn(change: pulumi.ResourceHookArgs) -> None:
            for line in inputs.warn(_labels(change.old_inputs), _labels(change.new_inputs)):
                pulumi.log.warn(line)

        sharing = pulumi.ResourceHook(
            f"{name}-sharing", warn, pulumi.ResourceHookOptions(on_dry_run=True)
        )
        failed_pool = FailedPool(name, settings, place, inputs.written)
        explain = error_hook(self, f"pool-{name}", place.project, failed_pool)
        hooks = pulumi.ResourceHookBinding(before_update=[sharing], on_error=[explain])
        # The arguments have these resources' names as plain text, so that no part of the pool is
        # unknown while one of them is replaced (NodeNetwork says why).
        named = list(inputs.subnetworks)
        if topology := settings.machine.series.accelerator_topology:
            policy = resource_name(place.cluster, name)
            named.append(self._workload_policy(policy, place, topology))
            place = replace(place, workload_policy=policy)
        gcp.container.NodePool(
            name,
            name=name,
            cluster=inputs.cluster,
            **node_pool_arguments(settings, place),
            opts=pulumi.ResourceOptions(
                parent=self,
                hooks=hooks,
                ignore_changes=IGNORED_CHANGES,
                custom_timeouts=TIMEOUTS,
                depends_on=named,
                replace_with=named,
            ),
        )
        self.register_outputs({})

    def _workload_policy(self, name: str, place: NodePlace, topology: str) -> pulumi.Resource:
        """Register the policy that has Compute Engine place the nodes in one domain of NVLink.

        Names and values: GoogleCloudPlatform/cluster-toolkit, examples/gke-a4x.
        """
        return gcp.compute.ResourcePolicy(
            name,
            name=name,
            region=region_of(place.zones[0]),
            workload_policy={"type": "HIGH_THROUGHPUT", "accelerator_topology": topology},
            opts=pulumi.ResourceOptions(parent=self),
        )


def _labels(inputs: Mapping[str, Any] | None) -> Labels:
    return dict(((inputs or {}).get("nodeConfig") or {}).get("labels") or {})
