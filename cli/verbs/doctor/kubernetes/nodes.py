"""Checks of a cluster's nodes against their pools' settings: readiness, labels and taints."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from berth.cli.verbs.doctor.findings import CLUSTER, DoctorFinding
from berth.components.cluster.api import Object
from berth.components.cluster.nodes import is_ready, untolerated_taint
from berth.components.core.words import counted
from berth.components.gke import tolerations
from berth.components.hardware.names import (
    DEPLOYED_LABEL,
    GKE_SHARES_LABEL,
    GKE_SIZE_LABEL,
    GKE_STRATEGY_LABEL,
    METADATA_SERVER_LABEL,
    POOL_LABEL,
)
from berth.components.sharing import Pool, label_command, offered_pools, serving_labels
from berth.stacks.settings.environment import EnvironmentSettings

_SHARED_BY_GKE = (GKE_STRATEGY_LABEL, GKE_SHARES_LABEL, GKE_SIZE_LABEL)

_OF_CONDITION = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "cloud.google.com/impending-node-termination",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)
"""Taints that come and go with a node's condition; workloads do not tolerate them."""


def check_pools(nodes: Iterable[Object], least: Mapping[str, int]) -> Iterable[DoctorFinding]:
    """Check that each declared pool has ready nodes, if it always has nodes.

    Args:
        nodes: the cluster's nodes.
        least: number of nodes that each pool has at least, by the pool's name.
    """
    ready: dict[str, list[bool]] = {name: [] for name in least}
    others = set()
    for node in nodes:
        name = _labels(node).get(POOL_LABEL)
        if name in ready:
            ready[name].append(is_ready(node))
        elif name:
            others.add(name)
    for name in least:
        if least[name] and not ready[name]:
            has = f"; its pools are {', '.join(sorted(others))}" if others else ""
            yield CLUSTER.missing(
                f"no node has the label {POOL_LABEL}={name}{has}",
                f"kubectl get nodes --label-columns={POOL_LABEL}",
            )
        else:
            yield _check_ready(name, ready[name])


def _check_ready(pool: str, ready: Sequence[bool]) -> DoctorFinding:
    if not ready:
        return CLUSTER.fine(f"pool {pool}: no nodes now")
    if all(ready):
        return CLUSTER.fine(f"pool {pool}: {counted(len(ready), 'node')}, all ready")
    return CLUSTER.missing(
        f"pool {pool}: {ready.count(False)} of {len(ready)} nodes are not ready",
        f"kubectl get nodes --selector={POOL_LABEL}={pool}",
    )


def check_nodes(nodes: Iterable[Object], settings: EnvironmentSettings) -> list[DoctorFinding]:
    """Return findings on labels and taints of declared pools' nodes; none if all is well."""
    all_nodes = list(nodes)
    pools = offered_pools(settings.pools, settings.sharing)
    operator = any(pool.settings.by_operator for pool in pools.values())
    findings: list[DoctorFinding] = []
    for name, pool in pools.items():
        of_pool = [node for node in all_nodes if _labels(node).get(POOL_LABEL) == name]
        findings += _check_serving_labels(pool, of_pool, operator=operator)
        findings += _check_taints(pool, of_pool)
        findings += _check_sharing_of_gke(pool, of_pool)
    return findings


def check_metadata(nodes: Iterable[Object], pools: Collection[str]) -> Iterable[DoctorFinding]:
    """Yield the pools with nodes that give their own credentials to pods."""
    without: dict[str, list[str]] = {}
    for node in nodes:
        labels = _labels(node)
        if labels.get(POOL_LABEL) in pools and labels.get(METADATA_SERVER_LABEL) != "true":
            without.setdefault(labels[POOL_LABEL], []).append(node["metadata"]["name"])
    for pool, names in sorted(without.items()):
        yield CLUSTER.missing(
            f"pool {pool}: nodes without GKE's metadata server (such as {names[0]}) give pods the"
            " credentials of the node, which `isolation.metadataServer` lets them ask for",
            f"gcloud container node-pools update {pool} --workload-metadata=GKE_METADATA"
            " --cluster=CLUSTER --location=LOCATION",
        )


def _check_serving_labels(
    pool: Pool, nodes: Sequence[Object], *, operator: bool
) -> Iterable[DoctorFinding]:
    """Yield labels that nodes lack, without which two device plugins would serve the same GPUs."""
    serves = operator or any(_labels(node).get(DEPLOYED_LABEL) == "true" for node in nodes)
    if not (serves or pool.settings.by_dra):
        return
    lacking: dict[str, str] = {}
    without = []
    for node in nodes:
        labels = _labels(node)
        wrong = {
            key: value for key, value in serving_labels(pool).items() if labels.get(key) != value
        }
        if wrong:
            lacking |= wrong
            without.append(node["metadata"]["name"])
    if lacking:
        yield CLUSTER.missing(
            f"pool {pool.name}: {len(without)} of {len(nodes)} nodes (such as {without[0]}) lack"
            " labels that select the device plugin: a second one, or the wrong one, advertises"
            " them",
            label_command(pool.name, lacking),
        )


def _check_taints(pool: Pool, nodes: Iterable[Object]) -> Iterable[DoctorFinding]:
    """Yield taints that the settings do not name: nothing of berth tolerates them."""
    tolerated = tolerations(pool.settings)
    for taint in _lasting_taints(nodes):
        if not untolerated_taint([taint], tolerated):
            continue
        key = taint["key"]
        value = taint["value"]
        effect = taint["effect"]
        yield CLUSTER.missing(
            f"pool {pool.name}: nodes have the taint {key}={value}:{effect}, which its settings do"
            " not name: neither workers nor the GPU Operator's daemons run on them",
            f"environment.pools.{pool.name}.taints: [{{key: {key}, value: {value!r}, effect:"
            f" {effect}}}]",
        )


def _lasting_taints(nodes: Iterable[Object]) -> list[Mapping[str, str]]:
    """Return the lasting taints of nodes that keep pods away, each once."""
    taints: list[Mapping[str, str]] = []
    for node in nodes:
        for entry in (node.get("spec") or {}).get("taints") or []:
            if entry["effect"] == "PreferNoSchedule" or entry["key"].startswith(_OF_CONDITION):
                continue
            taint = {name: entry.get(name) or "" for name in ("key", "value", "effect")}
            if taint not in taints:
                taints.append(taint)
    return taints


def _check_sharing_of_gke(pool: Pool, nodes: Iterable[Object]) -> Iterable[DoctorFinding]:
    """Yield that GKE itself shares the GPUs of nodes in another way than the settings say."""
    by_berth = pool.settings.by_operator or pool.settings.by_dra
    expected = {} if by_berth else pool.profile.by_gke
    for node in nodes:
        labels = _labels(node)
        actual = {label: labels[label] for label in _SHARED_BY_GKE if label in labels}
        if actual != expected:
            ways = " × ".join(actual.values()) or "whole"
            yield CLUSTER.warning(
                f"pool {pool.name}: GKE itself has the GPUs of its nodes (such as"
                f" {node['metadata']['name']}) {ways}, and its settings say otherwise: berth counts"
                " other GPUs than the nodes advertise",
                f"environment.pools.{pool.name}: {{gpuManagement: gke, sharing: NAME}}   # with"
                " environment.sharing.NAME: {kind: time-slicing, replicas: 4,"
                " failRequestsGreaterThanOne: true}, {kind: mps, replicas: 4} or {kind: mig,"
                " strategy: single, profile: 1g.10gb}; without `sharing` for whole GPUs",
            )
            return


def _labels(node: Object) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}
