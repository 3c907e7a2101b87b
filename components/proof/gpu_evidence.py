"""Verdicts on a pool's nodes and on its cuda-vector-add Job. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.components.cluster.api import Object
from berth.components.cluster.nodes import is_ready, is_simulated
from berth.components.cluster.pods import why_not_ready
from berth.components.core.bounds import Bounds, at_least
from berth.components.hardware.names import DEPLOYED_LABEL
from berth.components.proof.checks import SIMULATED, Check, listed
from berth.components.proof.cuda_vector_add import SUCCESS
from berth.components.sharing import Offer, Pool, label_command, serving_labels

_GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-")
_ENDED = ("Succeeded", "Failed")
_RAN = "cuda-vector-add"


@dataclass(frozen=True)
class Ran:
    """Job as last seen, with its pod, node, warnings, and the end of its log."""

    job: Object | None
    pod: Object | None = None
    node: Object | None = None
    log: str = ""
    log_problem: str = ""
    events: Sequence[Object] = field(default_factory=tuple)
    waited: str = ""
    """How long berth waited for the Job: `5m`."""


def judge_nodes(pool: Pool, nodes: Sequence[Object]) -> list[Check]:
    """Compare the existing nodes of a pool with GPUs with the pool's settings."""
    offer, fewest = offer_of(pool), at_least(pool.settings.nodes)
    if not nodes and not fewest:
        return [Check("nodes", "skipped", f"there is no node now ({_size(pool)})")]
    checks = [_ready(pool, nodes, fewest)]
    if not nodes:
        return checks
    expected = str(offer.per_node)
    for part in ("capacity", "allocatable"):
        found = {
            _name(node): str(_resources(node, part).get(offer.resource, "none")) for node in nodes
        }
        wrong = [f"{name} has {count}" for name, count in found.items() if count != expected]
        bad = wrong and f"{listed(wrong)}; {expected} were expected"
        on = "the node" if len(nodes) == 1 else f"each of {len(nodes)} nodes"
        checks.append(_check(f"{part} of {offer.resource}", bad, f"{expected} on {on}"))
    others = [
        f"{_name(node)} has {text}"
        for node in nodes
        if (text := _other_resources(node, offer.resource))
    ]
    checks.append(_check("other GPU resources", listed(others), "none"))
    if offer.labels:
        wrong = [
            f"{_name(node)}: {text}"
            for node in nodes
            if (text := _wrong_labels(node, offer.labels))
        ]
        right = ", ".join(f"{key}={value}" for key, value in offer.labels.items())
        checks.append(_check("feature labels", listed(wrong), right))
    else:
        checks.append(_without_operator(pool, nodes))
    return checks


def _without_operator(pool: Pool, nodes: Sequence[Object]) -> Check:
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
            f"the GPU Operator serves {listed(served)} too; run: {command}",
        )
    return Check(
        "feature labels", "skipped", "GKE's own device plugin serves this pool and sets none"
    )


def judge_run(run: Ran, resource: str, success: str = SUCCESS) -> list[Check]:
    """Check whether a Job that requested a resource was scheduled, and whether it added."""
    if run.pod is None or run.node is None:
        return [
            Check("scheduling", "fail", _why_not_scheduled(run)),
            Check(_RAN, "skipped", "it was not scheduled"),
        ]
    return [
        Check("scheduling", "pass", f"1 {resource} on {_name(run.node)}"),
        _ran(run, run.pod, run.node, success),
    ]


def not_run(reason: str) -> list[Check]:
    """Return the checks of a Job that was not created."""
    return [Check("scheduling", "skipped", reason), Check(_RAN, "skipped", "no Job was made")]


def why_no_job(pool: Pool, nodes: Sequence[Object], pods: Iterable[Object]) -> str | None:
    """Return why a Job would wait in vain: the pool is full and cannot grow; None if it can run."""
    offer, most = offer_of(pool), pool.settings.nodes_at_most
    if most == 0:
        return "the pool has 0 nodes by its settings"
    if len(nodes) < most:
        return None
    held = Counter[tuple[str, str]]()
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in _ENDED:
            held[pod["spec"].get("nodeName", ""), pod["metadata"]["namespace"]] += _requested(
                pod, offer.resource
            )
    holders = Counter[str]()
    for node in nodes:
        here = {
            owner: count for (name, owner), count in held.items() if name == _name(node) and count
        }
        offered = int(_resources(node, "allocatable").get(offer.resource, 0))
        if not offered or sum(here.values()) < offered:
            return None
        holders.update(here)
    by = ", ".join(f"{owner} {count}" for owner, count in sorted(holders.items()))
    return (
        f"all {holders.total()} {offer.resource} are in use ({by}) and the pool has no more nodes"
        " to add"
    )


def progress(run: Ran) -> str:
    """Return a Job's state, for people who wait for it."""
    if run.job is not None and (ended := ending(run.job)):
        return "Complete" if ended[0] == "Complete" else f"Failed: {ended[1]}"
    if run.pod is None:
        return "waiting for its pod"
    if (run.pod.get("status") or {}).get("phase") == "Succeeded":
        return "its pod has succeeded"
    return why_not_ready(run.pod) or "its container runs"


def ending(job: Object) -> tuple[str, str] | None:
    """Return how a Job ended, `Complete` or `Failed`, with the reason; None while it runs."""
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return condition[
                "type"
            ], f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")
    return None


def offer_of(pool: Pool) -> Offer:
    """Return what a pool with GPUs offers."""
    if pool.offer is None:
        raise ValueError(f"pool {pool.name!r} offers no GPUs")
    return pool.offer


def _ran(run: Ran, pod: Object, node: Object, success: str) -> Check:
    ended = ending(run.job) if run.job is not None else ("Failed", "the Job is gone")
    if ended is None:
        return Check(
            _RAN,
            "fail",
            f"not ended after {run.waited}: {why_not_ready(pod) or 'its container runs'}",
        )
    state, reason = ended
    last = next((line.strip() for line in reversed(run.log.splitlines()) if line.strip()), "")
    if state == "Failed":
        words = why_not_ready(pod) if pod.get("status", {}).get("phase") == "Failed" else None
        return Check(
            _RAN, "fail", f"{words or reason}" + (f"; its log ends: {last}" if last else "")
        )
    if is_simulated(node):
        return Check(_RAN, "simulated", SIMULATED)
    if success in run.log:
        return Check(_RAN, "pass", f"its log says: {success}")
    found = f"it ends: {last}" if run.log else run.log_problem or "it is empty"
    return Check(_RAN, "fail", f"the Job is Complete, but its log doesn't say {success!r}: {found}")


def _why_not_scheduled(run: Ran) -> str:
    if run.pod is not None:
        return f"not after {run.waited}: {why_not_ready(run.pod)}"
    if run.job is None:
        return "the Job is gone"
    if ended := ending(run.job):
        return f"{ended[0]}: {ended[1]}"
    words = [str(event.get("message") or event.get("reason")) for event in run.events]
    return f"not after {run.waited}: " + ("; ".join(dict.fromkeys(words)) or "the Job has no pod")


def _ready(pool: Pool, nodes: Sequence[Object], fewest: int) -> Check:
    waiting = [_name(node) for node in nodes if not is_ready(node)]
    evidence = f"{len(nodes) - len(waiting)} of {len(nodes)} Ready ({_size(pool)})"
    if waiting:
        evidence += f"; not: {listed(waiting)}"
    if cordoned := [_name(node) for node in nodes if node.get("spec", {}).get("unschedulable")]:
        evidence += f"; cordoned: {listed(cordoned)}"
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


def _resources(node: Object, part: str) -> dict[str, Any]:
    return (node.get("status") or {}).get(part) or {}


def _other_resources(node: Object, expected: str) -> str:
    """Return GPUs under other names; the kubelet keeps those of a plugin that is gone, with 0."""
    return ", ".join(
        f"{count} {resource}"
        for resource, count in sorted(_resources(node, "capacity").items())
        if resource.startswith(_GPU_RESOURCES) and resource != expected and str(count) != "0"
    )


def _wrong_labels(node: Object, expected: dict[str, str]) -> str:
    labels = node["metadata"].get("labels") or {}
    return ", ".join(
        (
            f"{key} is {labels[key]}, not {value}"
            if key in labels
            else f"{key} is missing, not {value}"
        )
        for key, value in expected.items()
        if labels.get(key) != value
    )


def _requested(pod: Object, resource: str) -> int:
    limits = [
        (container.get("resources") or {}).get("limits") or {}
        for container in pod["spec"]["containers"]
    ]
    return sum(int(limit.get(resource, 0)) for limit in limits)


def _check(name: str, bad: str | list[str], good: str) -> Check:
    return Check(name, "fail", str(bad)) if bad else Check(name, "pass", good)


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])
