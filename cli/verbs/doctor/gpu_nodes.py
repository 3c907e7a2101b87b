"""Checks of an existing cluster's nodes against their pools' settings: labels and taints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.cluster.scheduling import untolerated
from berth.components.gke import tolerations
from berth.components.hardware.names import DEPLOYED_LABEL, POOL_LABEL
from berth.components.sharing import Pool, label_command, offered, serving_labels
from berth.stacks.settings.environment import EnvironmentSettings

Object = dict[str, Any]

CLUSTER = Topic("cluster")

# Taints that come and go with a node's condition; workloads do not tolerate them.
_OF_CONDITION = (
    *("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "cloud.google.com/impending-node-termination"),
    *("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"),
)


def check_nodes(nodes: Iterable[Object], settings: EnvironmentSettings) -> list[Finding]:
    """Return findings on labels and taints of declared pools' nodes; none if all is well."""
    there = list(nodes)
    pools = offered(settings.pools, settings.sharing)
    operator = any(pool.settings.by_operator for pool in pools.values())
    findings = []
    for name, pool in pools.items():
        of_pool = [node for node in there if _labels(node).get(POOL_LABEL) == name]
        findings += [*_unlabeled(pool, of_pool, operator=operator), *_untolerated(pool, of_pool)]
    return findings


def _unlabeled(pool: Pool, nodes: Sequence[Object], *, operator: bool) -> Iterable[Finding]:
    """Yield labels that nodes lack, without which two device plugins would serve the same GPUs."""
    serves = operator or any(_labels(node).get(DEPLOYED_LABEL) == "true" for node in nodes)
    if not (serves or pool.settings.by_dra):
        return
    lacking: dict[str, str] = {}
    without = []
    for node in nodes:
        wrong = {key: value for key, value in serving_labels(pool).items() if _labels(node).get(key) != value}
        if wrong:
            lacking |= wrong
            without.append(node["metadata"]["name"])
    if lacking:
        yield CLUSTER.missing(
            f"pool {pool.name}: {len(without)} of {len(nodes)} nodes (such as {without[0]}) lack labels that select the"
            " device plugin: a second one, or the wrong one, advertises them",
            label_command(pool.name, lacking),
        )


def _untolerated(pool: Pool, nodes: Sequence[Object]) -> Iterable[Finding]:
    """Yield taints that the settings do not name, so that nothing of berth tolerates them."""
    tolerated = tolerations(pool.settings)
    for taint in _taints(nodes):
        if untolerated([taint], tolerated):
            key, value, effect = taint["key"], taint.get("value", ""), taint["effect"]
            yield CLUSTER.missing(
                f"pool {pool.name}: nodes have the taint {key}={value}:{effect}, which its settings do not name:"
                " neither workers nor the GPU Operator's daemons run on them",
                f"environment.pools.{pool.name}.taints: [{{key: {key}, value: {value!r}, effect: {effect}}}]",
            )


def _taints(nodes: Iterable[Object]) -> list[Mapping[str, str]]:
    """Return the lasting taints of nodes that keep pods away, each once."""
    found: list[Mapping[str, str]] = []
    for node in nodes:
        for taint in (node.get("spec") or {}).get("taints") or []:
            same = {name: taint.get(name) or "" for name in ("key", "value", "effect")}
            lasting = taint["effect"] != "PreferNoSchedule" and not taint["key"].startswith(_OF_CONDITION)
            if lasting and same not in found:
                found.append(same)
    return found


def _labels(node: Object) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}
