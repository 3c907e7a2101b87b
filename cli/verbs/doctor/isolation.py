"""Checks of what berths' isolation rests on in an existing cluster: policies and metadata server.

berth's own clusters have both, by the settings of the cluster and its node pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.cluster.api import ClusterApi
from berth.components.hardware.names import METADATA_SERVER_LABEL, POOL_LABEL
from berth.components.isolation import IsolationSettings

CLUSTER = Topic("cluster")

_DAEMON_SETS = "/apis/apps/v1/daemonsets"

# Agents on nodes, by the names in their projects' own manifests. Dataplane V2 is anetd
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dataplane-v2).
_ENFORCERS = frozenset(
    """
    anetd antrea-agent calico-node canal cilium kube-router ovnkube-node weave-net
    """.split()
)


def check_isolation(
    api: ClusterApi, nodes: Sequence[dict[str, Any]], settings: IsolationSettings, pools: Iterable[str]
) -> Iterable[Finding]:
    """Check that NetworkPolicies are enforced, and that nodes keep their credentials.

    Args:
        api: the cluster.
        nodes: its nodes.
        settings: complete isolation of the environment's berths.
        pools: names of the environment's pools.

    Raises:
        ClusterError: the API server does not answer or refuses.
    """
    if settings.network_policies:
        if there := sorted({item["metadata"]["name"] for item in api.list(_DAEMON_SETS)[0]} & _ENFORCERS):
            yield CLUSTER.fine(f"NetworkPolicies are enforced by {', '.join(there)}")
        else:
            yield CLUSTER.missing(
                "nothing in the cluster enforces NetworkPolicies: it has no DaemonSet such as anetd (Dataplane V2) or"
                " calico-node, so berths reach each other, and their node's metadata server",
                "gcloud container clusters update CLUSTER --update-addons=NetworkPolicy=ENABLED --location=LOCATION"
                "   # then --enable-network-policy; or `isolation: {networkPolicies: false}` to accept it",
            )
    if settings.metadata_server:
        yield from _metadata(nodes, set(pools))


def _metadata(nodes: Iterable[dict[str, Any]], pools: set[str]) -> Iterable[Finding]:
    """Yield the pools with nodes that give their own credentials to pods."""
    without: dict[str, list[str]] = {}
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        if labels.get(POOL_LABEL) in pools and labels.get(METADATA_SERVER_LABEL) != "true":
            without.setdefault(labels[POOL_LABEL], []).append(node["metadata"]["name"])
    for pool, names in sorted(without.items()):
        yield CLUSTER.missing(
            f"pool {pool}: nodes without GKE's metadata server (such as {names[0]}) give pods the credentials of the"
            " node, which `isolation.metadataServer` lets them ask for",
            f"gcloud container node-pools update {pool} --workload-metadata=GKE_METADATA --cluster=CLUSTER"
            " --location=LOCATION",
        )
