"""Rules of node labels by which GPU software chooses its nodes: written by hand, or missing."""

from collections.abc import Iterator
from dataclasses import dataclass

from berth.components.core.rules import Breach, Rules
from berth.components.gke import PoolSettings
from berth.components.hardware.names import CONFIG_LABEL, MANAGED_DRANET_LABEL
from berth.components.sharing.device_plugin import label_command, node_labels, serving_labels
from berth.components.sharing.modes import MODES
from berth.components.sharing.pools import Pool, offered_pools
from berth.components.sharing.settings import SharingSettings

_CHOOSING_LABELS = frozenset({CONFIG_LABEL, *(mode.label for mode in MODES)})
"""Labels by which the device plugin and the MIG manager choose a configuration."""

_MOST_CHARACTERS = 1024


@dataclass(frozen=True)
class ServedPool:
    """A pool with the devices that its nodes offer, in its environment."""

    pool: Pool
    environment: SharingSettings


SERVED_POOLS = Rules[ServedPool](PoolSettings)
"""Rules of the labels of a pool whose profile fits its machines."""


@SERVED_POOLS.problem("labels.*")
def label_that_contradicts_the_settings(served: ServedPool) -> Iterator[Breach]:
    """Nodes offer what berth counts on only with the labels of the pool's settings."""
    labels = serving_labels(served.pool)
    for key, value in served.pool.settings.labels.items():
        if key not in labels.keys() | _CHOOSING_LABELS or labels.get(key) == value:
            continue
        state = f"is {labels[key]}" if key in labels else "is not there"
        yield Breach(
            f"by the pool's settings {key} {state}, and a node with {value} would not offer what"
            " berth counts on; take this line out, and use `sharing`, `gpuManagement` or"
            " `gpuAllocation`",
            at=("labels", key),
        )


@SERVED_POOLS.problem("labels")
def labels_longer_than_gke_takes(served: ServedPool) -> str | None:
    """GKE takes 1,024 characters of node labels, keys and values, berth's own among them.

    Source: discovery document of the API container v1, revision 20261027, NodeConfig.labels.
    """
    if served.environment.cluster.existing or not served.pool.settings.labels:
        return None
    labels = {**served.pool.settings.labels, **node_labels(served.pool)}
    if served.pool.settings.rdma == "managed":
        labels[MANAGED_DRANET_LABEL] = "true"
    characters = sum(len(key) + len(value) for key, value in labels.items())
    if characters <= _MOST_CHARACTERS:
        return None
    return (
        f"{len(labels)} labels, with those that berth adds, have {characters} characters in keys"
        f" and values; GKE takes {_MOST_CHARACTERS}; take some out, or shorten them"
    )


@SERVED_POOLS.warning()
def labels_that_existing_nodes_need(served: ServedPool) -> str | None:
    """Berth labels no nodes of an existing cluster, where two plugins may serve the same GPUs."""
    pool = served.pool
    labels = serving_labels(pool)
    on_operator = any(other.by_operator for other in served.environment.pools.values())
    if not served.environment.cluster.existing or not labels:
        return None
    if pool.settings.by_dra:
        danger = "a device plugin hands out the same GPUs as claims do, each to two pods"
    elif not on_operator:
        return None
    elif not pool.settings.by_operator:
        danger = (
            "the GPU Operator, which takes every node with an NVIDIA device, runs a second device"
            " plugin beside GKE's"
        )
    elif pool.profile.facts.shared:
        danger = (
            "GKE's own device plugin runs beside the GPU Operator's, which there has whole GPUs"
        )
    else:
        danger = "GKE's own device plugin runs beside the GPU Operator's"
    return (
        f"berth labels no nodes of an existing cluster: where they lack these labels, {danger};"
        f" run: {label_command(pool.name, labels)}, and give the node pool the same labels for"
        " nodes that come later"
    )


def served_pools(settings: SharingSettings) -> Iterator[ServedPool]:
    """Yield the environment's pools whose profiles fit their machines."""
    for pool in offered_pools(settings.pools, settings.sharing).values():
        yield ServedPool(pool, settings)
