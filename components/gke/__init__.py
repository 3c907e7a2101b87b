"""GKE: settings, rules, components and effects of a cluster, its networks and node pools.

Belongs here: Google Cloud and its machines. Does not belong here: who shares a GPU (sharing/), what
runs on the nodes. The components import Pulumi; they are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from berth.components.gke.accounts import NODE_ROLES, node_account_address
from berth.components.gke.addresses import AddressNeed, address_needs, size_that_gke_refuses
from berth.components.gke.cluster_arguments import cluster_arguments
from berth.components.gke.cluster_settings import ClusterSettings, ExistingCluster
from berth.components.gke.names import PROVIDER
from berth.components.gke.network_settings import ExistingNetwork, ExistingRdmaNetwork, ranges_of
from berth.components.gke.node_pool_arguments import NodePlace
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.scheduling import pool_affinity, tolerations
from berth.components.gke.settings import Addon, GkeSettings
from berth.components.gke.shares import SHARE_CLASSES, SHARE_DRIVER, own_class, storage_classes
from berth.components.gke.versions import needed_features, parse_gke_version, why_too_old

if TYPE_CHECKING:
    from berth.components.gke.cluster import Cluster, ClusterInputs
    from berth.components.gke.network import Network, NetworkInputs
    from berth.components.gke.node_account import NodeAccount
    from berth.components.gke.node_pool import NodePool, NodePoolInputs

_LAZY = {
    "Cluster": "cluster",
    "ClusterInputs": "cluster",
    "Network": "network",
    "NetworkInputs": "network",
    "NodeAccount": "node_account",
    "NodePool": "node_pool",
    "NodePoolInputs": "node_pool",
}
"""Modules of the components and their inputs, by name."""


def __getattr__(name: str) -> Any:
    """Load a component when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
