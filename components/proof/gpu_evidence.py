"""What nodes and a cuda-vector-add Job show, judged against what a pool should offer: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from berth.components.cluster.pods import is_ready, why_not_ready
from berth.components.core.bounds import Bounds, at_least
from berth.components.hardware.names import DEPLOYED_LABEL
from berth.components.proof.cuda_vector_add import SUCCESS
from berth.components.sharing import Offer, Pool, label_command, serving_labels

Object = dict[str, Any]
Verdict = Literal["pass", "fail", "simulated", "skipped"]

SIMULATED = "simulated: this node runs no containers (KWOK)"

_KWOK = "kwok.x-k8s.io/node"
_GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-")
_ENDED = ("Succeeded", "Failed")
# Of a pool with hundreds of nodes that are all wrong, as many are named.
_NAMED = 4


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what it is.
        verdict: `simulated` is what a node that runs no containers makes of a pass.
        evidence: what was found, in one line.
    """

    name: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Run:
    """A Job as it was last seen: ended, or still not when the time was up.

    Attributes:
        job: the Job; None if it is gone.
        pod: its pod; None before there is one.
        node: the pod's node; None before it has one.
        log: the end of its log.
        log_problem: why there is no log.
        events: warnings about the Job.
        waited: how long it was waited for: `5m`.
    """

    job: Object | None
    pod: Object | None = None
    node: Object | None = None
    log: str = ""
    log_problem: str = ""
    events: Sequence[Object] = field(default_factory=tuple)
    waited: str = ""


def is_simulated(node: Object) -> bool:
    """KWOK plays this node: its containers never run."""
    return _KWOK in (node["metadata"].get("annotations") or {})


def judge_nodes(pool: Pool, nodes: Sequence[Object]) -> list[Check]:
    """A pool's nodes against what its settings offer.

    Args:
        pool: the pool; it must have GPUs.
        nodes: those of its nodes that are there.
    """
    offer, fewest = _offer(pool), fewest_nodes(pool)
    if not nodes and not fewest:
        return [Check("nodes", "skipped", f"there is no node now ({_size(pool)})")]
    checks = [_ready(pool, nodes, fewest)]
    if not nodes:
        return checks
    wanted = str(offer.per_node)
    for part in ("capacity", "allocatable"):
        found = {_name(node): str(_resources(node, part).get(offer.resource, "none")) for node in nodes}
        wrong = [f"{name} has {count}" for name, count in found.items() if count != wanted]
        bad = wrong and f"{_listed(wrong)}; {wanted} were expected"
        checks.append(_check(f"{part} of {offer.resource}", bad, f"{wanted} on {_nodes(len(nodes))}"))
    others = [f"{_name(node)} has {text}" for node in nodes if (text := _other_resources(node, offer.resource))]
    checks.append(_check("other GPU resources", _listed(others), "none"))
    if offer.labels:
        wrong = [f"{_name(node)}: {text}" for node in nodes if (text := _wrong_labels(node, offer.labels))]
        right = ", ".join(f"{key}={value}" for key, value in offer.labels.items())
        checks.append(_check("feature labels", _listed(wrong), right))
    else:
        checks.append(_without_operator(pool, nodes))
    return checks


def _without_operator(pool: Pool, nodes: Sequence[Object]) -> Check:
    """The labels of a pool that the GPU Operator leaves alone: it hands the GPUs out a second time where it does not."""
    served = [_name(node) for node in nodes if (node["metadata"].get("labels") or {}).get(DEPLOYED_LABEL) == "true"]
    if served:
        mend = label_command(pool.name, serving_labels(pool))
        return Check("feature labels", "fail", f"the GPU Operator serves {_listed(served)} too; run: {mend}")
    return Check("feature labels", "skipped", "GKE's own device plugin serves this pool and sets none")


def judge_run(run: Run, resource: str) -> list[Check]:
    """A cuda-vector-add Job: whether it was scheduled, and whether it added.

    Args:
        run: what was seen of it.
        resource: what it asked one of.
    """
    if run.pod is None or run.node is None:
        return [Check("scheduling", "fail", _why_not_scheduled(run)), Check(_RAN, "skipped", "it was not scheduled")]
    on_node = Check("scheduling", "pass", f"1 {resource} on {_name(run.node)}")
    return [on_node, _ran(run, run.pod, run.node)]


_RAN = "cuda-vector-add"


def not_run(reason: str) -> list[Check]:
    """The checks of a Job that was not made."""
    return [Check("scheduling", "skipped", reason), Check(_RAN, "skipped", "no Job was made")]


def why_no_job(pool: Pool, nodes: Sequence[Object], pods: Iterable[Object]) -> str | None:
    """Why a Job would wait in vain though nothing is wrong: the pool is full and can't grow. None if it can run.

    Args:
        pool: the pool; it must have GPUs.
        nodes: those of its nodes that are there.
        pods: all pods.
    """
    offer, most = _offer(pool), pool.settings.nodes_at_most
    if most == 0:
        return "the pool has 0 nodes by its settings"
    if len(nodes) < most:
        return None
    held = Counter[tuple[str, str]]()
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in _ENDED:
            held[pod["spec"].get("nodeName", ""), pod["metadata"]["namespace"]] += _asked(pod, offer.resource)
    holders = Counter[str]()
    for node in nodes:
        here = {owner: count for (name, owner), count in held.items() if name == _name(node) and count}
        offered = int(_resources(node, "allocatable").get(offer.resource, 0))
        if not offered or sum(here.values()) < offered:
            return None
        holders.update(here)
    by = ", ".join(f"{owner} {count}" for owner, count in sorted(holders.items()))
    return f"all {holders.total()} {offer.resource} are in use ({by}) and the pool has no more nodes to add"


def progress(run: Run) -> str:
    """What a Job is at, for people who wait for it."""
    if run.job is not None and (ended := ending(run.job)):
        return "Complete" if ended[0] == "Complete" else f"Failed: {ended[1]}"
    if run.pod is None:
        return "waiting for its pod"
    if (run.pod.get("status") or {}).get("phase") == "Succeeded":
        return "its pod has succeeded"
    return why_not_ready(run.pod) or "its container runs"


def ending(job: Object) -> tuple[str, str] | None:
    """How a Job ended, `Complete` or `Failed`, with the reason; None while it hasn't."""
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return condition["type"], f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")
    return None


def _ran(run: Run, pod: Object, node: Object) -> Check:
    ended = ending(run.job) if run.job is not None else ("Failed", "the Job is gone")
    if ended is None:
        return Check(_RAN, "fail", f"not ended after {run.waited}: {why_not_ready(pod) or 'its container runs'}")
    state, reason = ended
    if state == "Failed":
        words = why_not_ready(pod) if pod.get("status", {}).get("phase") == "Failed" else None
        last = _last_line(run.log)
        return Check(_RAN, "fail", f"{words or reason}" + (f"; its log ends: {last}" if last else ""))
    if is_simulated(node):
        return Check(_RAN, "simulated", SIMULATED)
    if SUCCESS in run.log:
        return Check(_RAN, "pass", f"its log says: {SUCCESS}")
    found = f"it ends: {_last_line(run.log)}" if run.log else run.log_problem or "it is empty"
    return Check(_RAN, "fail", f"the Job is Complete, but its log doesn't say {SUCCESS!r}: {found}")


def _why_not_scheduled(run: Run) -> str:
    if run.pod is not None:
        return f"not after {run.waited}: {why_not_ready(run.pod)}"
    if run.job is None:
        return "the Job is gone"
    if ended := ending(run.job):
        return f"{ended[0]}: {ended[1]}"
    words = [str(event.get("message") or event.get("reason")) for event in run.events]
    return f"not after {run.waited}: " + ("; ".join(dict.fromkeys(words)) or "the Job has no pod")


def _last_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _ready(pool: Pool, nodes: Sequence[Object], fewest: int) -> Check:
    ready = [node for node in nodes if is_ready(node)]
    evidence = f"{len(ready)} of {len(nodes)} Ready ({_size(pool)})"
    waiting = [_name(node) for node in nodes if not is_ready(node)]
    if waiting:
        evidence += f"; not: {_listed(waiting)}"
    if cordoned := [_name(node) for node in nodes if node.get("spec", {}).get("unschedulable")]:
        evidence += f"; cordoned: {_listed(cordoned)}"
    if len(nodes) < fewest:
        evidence += f"; {fewest - len(nodes)} missing"
    return Check("nodes", "fail" if waiting or len(nodes) < fewest else "pass", evidence)


def fewest_nodes(pool: Pool) -> int:
    """Nodes that a pool must have at any time."""
    return at_least(pool.settings.nodes)


def _size(pool: Pool) -> str:
    nodes = pool.settings.nodes
    return f"autoscaled, {nodes.min} to {nodes.max}" if isinstance(nodes, Bounds) else f"settings say {nodes}"


def _offer(pool: Pool) -> Offer:
    if pool.offer is None:
        raise ValueError(f"pool {pool.name!r} offers no GPUs")
    return pool.offer


def _resources(node: Object, part: str) -> dict[str, Any]:
    return (node.get("status") or {}).get(part) or {}


def _other_resources(node: Object, expected: str) -> str:
    """GPUs under other names; the kubelet keeps those of a plugin that went away, with 0."""
    return ", ".join(
        f"{count} {resource}"
        for resource, count in sorted(_resources(node, "capacity").items())
        if resource.startswith(_GPU_RESOURCES) and resource != expected and str(count) != "0"
    )


def _wrong_labels(node: Object, wanted: dict[str, str]) -> str:
    labels = node["metadata"].get("labels") or {}
    return ", ".join(
        f"{key} is {labels[key]}, not {value}" if key in labels else f"{key} is missing, not {value}"
        for key, value in wanted.items()
        if labels.get(key) != value
    )


def _asked(pod: Object, resource: str) -> int:
    containers = pod["spec"]["containers"]
    return sum(int(((each.get("resources") or {}).get("limits") or {}).get(resource, 0)) for each in containers)


def _check(name: str, bad: str | list[str], good: str) -> Check:
    return Check(name, "fail", str(bad)) if bad else Check(name, "pass", good)


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _NAMED
    return "; ".join(texts[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])


def _nodes(count: int) -> str:
    return "the node" if count == 1 else f"each of {count} nodes"
