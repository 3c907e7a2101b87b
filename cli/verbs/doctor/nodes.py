"""Checks of a cluster's nodes against their pools' settings: readiness, labels and taints."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from berth.cli.verbs.doctor.findings import Finding, Topic
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

CLUSTER = Topic("cluster")

_SHARED_BY_GKE = (GKE_STRATEGY_LABEL, GKE_SHARES_LABEL, GKE_SIZE_LABEL)

# Taints that come and go with a node's condition; workloads do not tolerate them.
_OF_CONDITION = (
    *(
        "node.kubernetes.io/",
        "node.cloudprovider.kubernetes.io/",
        "cloud.google.com/impending-node-termination",
    ),
    *("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"),
)


def check_pools(nodes: Iterable[Object], least: Mapping[str, int]) -> Iterable[Finding]:
    """Check that each declared pool has ready nodes, if it always has nodes."""
    of_pool: dict[str, list[bool]] = {name: [] for name in least}
    others = set()
    for node in nodes:
        name = _labels(node).get(POOL_LABEL)
        if name in of_pool:
            of_pool[name].append(is_ready(node))
        elif name:
            others.add(name)
    for name, ready in of_pool.items():
        if not ready and least[name]:
            has = f"; its pools are {', '.join(sorted(others))}" if others else ""
            yield CLUSTER.found("no-nodes", label=POOL_LABEL, pool=name, has=has)
        elif not all(ready):
            count = ready.count(False)
            yield CLUSTER.found(
                "not-ready", pool=name, count=count, of=len(ready), label=POOL_LABEL
            )
        else:
            has = f"{counted(len(ready), 'node')}, all ready" if ready else "no nodes now"
            yield CLUSTER.found("pool", pool=name, nodes=has)


def check_nodes(nodes: Iterable[Object], settings: EnvironmentSettings) -> list[Finding]:
    """Return findings on labels and taints of declared pools' nodes; none if all is well."""
    there = list(nodes)
    pools = offered_pools(settings.pools, settings.sharing)
    operator = any(pool.settings.by_operator for pool in pools.values())
    findings: list[Finding] = []
    for name, pool in pools.items():
        of_pool = [node for node in there if _labels(node).get(POOL_LABEL) == name]
        findings += _unlabeled(pool, of_pool, operator=operator)
        # Nothing of berth tolerates a taint that the settings do not name.
        tolerated = tolerations(pool.settings)
        findings += [
            CLUSTER.found("tainted", pool=name, **taint)
            for taint in _taints(of_pool)
            if untolerated_taint([taint], tolerated)
        ]
        findings += _shared_by_gke(pool, of_pool)
    return findings


def check_metadata(nodes: Iterable[Object], pools: Collection[str]) -> Iterable[Finding]:
    """Yield the pools with nodes that give their own credentials to pods."""
    without: dict[str, list[str]] = {}
    for node in nodes:
        labels = _labels(node)
        if labels.get(POOL_LABEL) in pools and labels.get(METADATA_SERVER_LABEL) != "true":
            without.setdefault(labels[POOL_LABEL], []).append(node["metadata"]["name"])
    for pool, names in sorted(without.items()):
        yield CLUSTER.found("no-metadata-server", pool=pool, node=names[0])


def _unlabeled(pool: Pool, nodes: Sequence[Object], *, operator: bool) -> Iterable[Finding]:
    """Yield labels that nodes lack, without which two device plugins would serve the same GPUs."""
    serves = operator or any(_labels(node).get(DEPLOYED_LABEL) == "true" for node in nodes)
    if not (serves or pool.settings.by_dra):
        return
    lacking: dict[str, str] = {}
    without = []
    for node in nodes:
        wrong = {
            key: value
            for key, value in serving_labels(pool).items()
            if _labels(node).get(key) != value
        }
        if wrong:
            lacking |= wrong
            without.append(node["metadata"]["name"])
    if lacking:
        facts = {"pool": pool.name, "count": len(without), "of": len(nodes), "node": without[0]}
        yield CLUSTER.found("unlabeled", remedy=label_command(pool.name, lacking), **facts)


def _shared_by_gke(pool: Pool, nodes: Iterable[Object]) -> Iterable[Finding]:
    """Yield that GKE itself shares the GPUs of nodes in another way than the settings say."""
    said = {} if pool.settings.by_operator or pool.settings.by_dra else pool.profile.by_gke
    for node in nodes:
        found = {label: _labels(node)[label] for label in _SHARED_BY_GKE if label in _labels(node)}
        if found != said:
            ways = " × ".join(found.values()) or "whole"
            yield CLUSTER.found(
                "shared-by-gke", pool=pool.name, node=node["metadata"]["name"], ways=ways
            )
            return


def _taints(nodes: Iterable[Object]) -> list[Mapping[str, str]]:
    """Return the lasting taints of nodes that keep pods away, each once."""
    found: list[Mapping[str, str]] = []
    for node in nodes:
        for taint in (node.get("spec") or {}).get("taints") or []:
            same = {name: taint.get(name) or "" for name in ("key", "value", "effect")}
            lasting = taint["effect"] != "PreferNoSchedule" and not taint["key"].startswith(
                _OF_CONDITION
            )
            if lasting and same not in found:
                found.append(same)
    return found


def _labels(node: Object) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}
