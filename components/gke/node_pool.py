"""A GKE node pool, with or without GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_gcp import container

from berth.components.gke.advice import Pooled
from berth.components.gke.explained import explained
from berth.components.gke.node_pool_arguments import IGNORED_CHANGES, NodePlace, node_pool_arguments
from berth.components.sharing.disturbance import of_labels
from berth.components.sharing.pools import Pool

TIMEOUTS = pulumi.CustomTimeouts(update="6h")
"""The provider's own two hours for an update end before GKE has replaced the nodes of a large GPU pool,
which it does one by one, with up to an hour for each to drain. Creation and deletion have the provider's."""


@dataclass(frozen=True)
class NodePoolInputs:
    """What a node pool needs to know.

    Attributes:
        pool: machine type, size, labels, taints, and how its GPUs are shared.
        cluster: name of the cluster.
        place: where the nodes are.
        occupants: berths and clusters whose workers are on it.
    """

    pool: Pool
    cluster: pulumi.Input[str]
    place: NodePlace
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

        def warn(change: pulumi.ResourceHookArgs) -> None:
            for line in of_labels(name, _labels(change.old_inputs), _labels(change.new_inputs), inputs.occupants):
                pulumi.log.warn(line)

        sharing = pulumi.ResourceHook(f"{name}-sharing", warn, pulumi.ResourceHookOptions(on_dry_run=True))
        pooled = Pooled(
            name,
            inputs.pool.settings,
            inputs.place.project,
            tuple(inputs.place.zones),
            inputs.place.cluster,
            inputs.place.location,
        )
        explain = explained(self, f"pool-{name}", inputs.place.project, pooled)
        hooks = pulumi.ResourceHookBinding(before_update=[sharing], on_error=[explain])
        container.NodePool(
            name,
            name=name,
            cluster=inputs.cluster,
            **node_pool_arguments(inputs.pool, inputs.place),
            opts=pulumi.ResourceOptions(
                parent=self, hooks=hooks, ignore_changes=IGNORED_CHANGES, custom_timeouts=TIMEOUTS
            ),
        )
        self.register_outputs({})


def _labels(inputs: Mapping[str, Any] | None) -> Mapping[str, str]:
    return dict(((inputs or {}).get("nodeConfig") or {}).get("labels") or {})
