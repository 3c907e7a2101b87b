"""Verdicts on the nodes of a pool with GPUs: their number, what they offer, their labels. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from berth.components.cluster.api import Object
from berth.components.cluster.nodes import is_ready
from berth.components.core.bounds import Bounds, at_least
from berth.components.hardware.names import DEPLOYED_LABEL
from berth.components.proof.checks import Check, first_texts
from berth.components.sharing import Offer, Pool, label_command, serving_labels

_GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-")
_ENDED = ("Succeeded", "Failed")


def judge_nodes(pool: Pool, nodes: Sequence[Object]) -> list[Check]:
    """Compare the existing nodes of a pool with GPUs with the pool's settings."""
    offer = offer_of(pool)
    fewest = at_least(pool.settings.nodes)
    if not nodes and not fewest:
        return [Check("nodes", "skipped", f"there is no node now ({_size(pool)})")]
    checks = [_judge_readiness(pool, nodes, fewest)]
    if not nodes:
        return checks
    checks += [_judge_amount(part, offer, nodes) for part in ("capacity", "allocatable")]
    checks.append(_judge_other_resources(offer, nodes))
    if offer.labels:
        checks.append(_judge_feature_labels(offer.labels, nodes))
    else:
        checks.append(_judge_without_operator(pool, nodes))
    return checks


def offer_of(pool: Pool) -> Offer:
    """Return what a pool with GPUs offers.

    Raises:
        ValueError: the pool has no GPUs.
    """
    if pool.offer is None:
        raise ValueError(f"pool {pool.name!r} offers no GPUs")
    return pool.offer


def why_no_job(pool: Pool, nodes: Sequence[Object], pods: Iterable[Object]) -> str | None:
    """Return why a Job would wait in vain: the pool is full and cannot grow; None if it can run."""
    offer = offer_of(pool)
    most = pool.settings.nodes_at_most
    if most == 0:
        return "the pool has 0 nodes by its settings"
    if len(nodes) < most:
        return None
    held = _held_on_nodes(pods, offer.resource)
    holders: Counter[str] = Counter()
    for node in nodes:
        on_node = held.get(_name(node), Counter())
        offered = int(_resources(node, "allocatable").get(offer.resource, 0))
        if not offered or on_node.total() < offered:
            return None
        holders.update(on_node)
    by = ", ".join(f"{owner} {count}" for owner, count in sorted(holders.items()))
    return (
        f"all {holders.total()} {offer.resource} are in use ({by}) and the pool has no more nodes"
        " to add"
    )


def _held_on_nodes(pods: Iterable[Object], resource: str) -> dict[str, Counter[str]]:
    """Return how much of a resource the pods of each namespace hold, by node."""
    held: dict[str, Counter[str]] = {}
    for pod in pods:
        requested = _requested(pod, resource)
        if requested and (pod.get("status") or {}).get("phase") not in _ENDED:
            on_node = held.setdefault(pod["spec"].get("nodeName", ""), Counter())
            on_node[pod["metadata"]["namespace"]] += requested
    return held


def _judge_readiness(pool: Pool, nodes: Sequence[Object], fewest: int) -> Check:
    waiting = [_name(node) for node in nodes if not is_ready(node)]
    evidence = f"{len(nodes) - len(waiting)} of {len(nodes)} Ready ({_size(pool)})"
    if waiting:
        evidence += f"; not: {first_texts(waiting)}"
    if cordoned := [_name(node) for node in nodes if node.get("spec", {}).get("unschedulable")]:
        evidence += f"; cordoned: {first_texts(cordoned)}"
    if len(nodes) < fewest:
        evidence += f"; {fewest - len(nodes)} missing"
    return Check("nodes", "fail" if waiting or len(nodes) < fewest else "pass", evidence)


def _size(pool: Pool) -> str:
    nodes = pool.settings.nodes
    return (
        f"autoscaled, {nodes.min} to {nodes.max}"
        if isinstance(nodes, Bounds)
        else f"settings say {nodes}"
    )


def _judge_amount(part: str, offer: Offer, nodes: Sequence[Object]) -> Check:
    """Check how many GPUs or shares the nodes have, by `capacity` or `allocatable`."""
    name = f"{part} of {offer.resource}"
    expected = str(offer.per_node)
    wrong: list[str] = []
    for node in nodes:
        count = str(_resources(node, part).get(offer.resource, "none"))
        if count != expected:
            wrong.append(f"{_name(node)} has {count}")
    if wrong:
        return Check(name, "fail", f"{first_texts(wrong)}; {expected} were expected")
    on = "the node" if len(nodes) == 1 else f"each of {len(nodes)} nodes"
    return Check(name, "pass", f"{expected} on {on}")


def _judge_other_resources(offer: Offer, nodes: Sequence[Object]) -> Check:
    others: list[str] = []
    for node in nodes:
        text = _other_resources(node, offer.resource)
        if text:
            others.append(f"{_name(node)} has {text}")
    if others:
        return Check("other GPU resources", "fail", first_texts(others))
    return Check("other GPU resources", "pass", "none")


def _judge_feature_labels(labels: Mapping[str, str], nodes: Sequence[Object]) -> Check:
    wrong: list[str] = []
    for node in nodes:
        text = _wrong_labels(node, labels)
        if text:
            wrong.append(f"{_name(node)}: {text}")
    if wrong:
        return Check("feature labels", "fail", first_texts(wrong))
    right = ", ".join(f"{key}={value}" for key, value in labels.items())
    return Check("feature labels", "pass", right)


def _judge_without_operator(pool: Pool, nodes: Sequence[Object]) -> Check:
    """Check that the GPU Operator does not offer the pool's GPUs a second time."""
    served = [
        _name(node)
        for node in nodes
        if (node["metadata"].get("labels") or {}).get(DEPLOYED_LABEL) == "true"
    ]
    if served:
        command = label_command(pool.name, serving_labels(pool))
        return Check(
            "feature labels",
            "fail",
            f"the GPU Operator serves {first_texts(served)} too; run: {command}",
        )
    return Check(
        "feature labels", "skipped", "GKE's own device plugin serves this pool and sets none"
    )


def _resources(node: Object, part: str) -> dict[str, Any]:
    return (node.get("status") or {}).get(part) or {}


def _other_resources(node: Object, expected: str) -> str:
    """Return GPUs under other names; the kubelet keeps those of a plugin that is gone, with 0."""
    return ", ".join(
        f"{count} {resource}"
        for resource, count in sorted(_resources(node, "capacity").items())
        if resource.startswith(_GPU_RESOURCES) and resource != expected and str(count) != "0"
    )


def _wrong_labels(node: Object, expected: Mapping[str, str]) -> str:
    labels = node["metadata"].get("labels") or {}
    wrong: list[str] = []
    for key, value in expected.items():
        if key not in labels:
            wrong.append(f"{key} is missing, not {value}")
        elif labels[key] != value:
            wrong.append(f"{key} is {labels[key]}, not {value}")
    return ", ".join(wrong)


def _requested(pod: Object, resource: str) -> int:
    """Return how much of a resource the containers of a pod request together."""
    requested = 0
    for container in pod["spec"]["containers"]:
        limits = (container.get("resources") or {}).get("limits") or {}
        requested += int(limits.get(resource, 0))
    return requested


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])
