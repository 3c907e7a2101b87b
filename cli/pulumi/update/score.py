"""Score of a plan: what it foresaw for RayClusters and resources, beside what was seen."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import PODS, RAY_CLUSTERS, ClusterApi, ClusterError, Object
from berth.components.core.words import counted
from berth.components.plan.effect import Level
from berth.components.ray.condition import condition_of
from berth.components.ray.reasons import Key, key_of
from berth.stacks.preview.report import Report

_OF_RAY = "ray.io/cluster"


@dataclass(frozen=True)
class Seen:
    """RayCluster at one moment: the UIDs of the pods that nobody but an update takes away."""

    pods: frozenset[str]
    moving: bool
    """Suspended, or with an edit that KubeRay has yet to look at."""
    waiting: int = 0
    """Pods for which no node has room."""
    scaled: frozenset[str] = frozenset()
    """UIDs of the workers that Ray's autoscaler takes away at any time."""


@dataclass(frozen=True)
class Wrong:
    """Wrong prediction for a RayCluster or a resource."""

    name: str
    text: str


@dataclass(frozen=True)
class Score:
    """Accuracy of a plan: right, missed and false predictions."""

    right: int
    """RayClusters whose pods stayed or went as the plan says."""
    lost: Sequence[str]
    """Names of the RayClusters that lost pods, foreseen or not."""
    missed: Sequence[Wrong]
    """Losses, replacements and waits that the plan did not say."""
    false_alarms: Sequence[Wrong]
    """Losses and waits that the plan said and that did not happen."""
    waiting: Sequence[str] = ()
    """Names of the RayClusters with pods that wait for room, foreseen or not."""
    foreseen: Sequence[str] = ()
    """Names of the RayClusters that may lose pods by the plan."""

    def __str__(self) -> str:
        wrong = [f"not foreseen: {found.text}" for found in self.missed]
        wrong += [f"foreseen, and did not happen: {found.text}" for found in self.false_alarms]
        return "; ".join(wrong)


def seen(api: ClusterApi | None) -> dict[Key, Seen] | None:
    """Return the RayClusters of a cluster with their pods; None if it cannot be asked."""
    if api is None:
        return None
    try:
        found, listed = api.list(RAY_CLUSTERS)[0], api.metadata(PODS, labelSelector=_OF_RAY)
        pending = api.list(PODS, labelSelector=_OF_RAY, fieldSelector="status.phase=Pending")[0]
    except ClusterError:
        return None
    clusters = {key_of(item): item for item in found}
    pods, scaled = ({key: set[str]() for key in clusters} for _ in range(2))
    for pod in listed:
        metadata, key = pod["metadata"], _cluster_of(pod)
        if key not in clusters or "deletionTimestamp" in metadata:
            continue
        worker = metadata["labels"].get("ray.io/node-type") == "worker"
        comes_and_goes = worker and clusters[key]["spec"].get("enableInTreeAutoscaling")
        (scaled if comes_and_goes else pods)[key].add(metadata["uid"])
    waiting = Counter(map(_cluster_of, filter(_finds_no_room, pending)))
    return {
        key: Seen(frozenset(pods[key]), moving, waiting[key], frozenset(scaled[key]))
        for key, item in clusters.items()
        for moving in [bool(item["spec"].get("suspend")) or not condition_of(item).seen]
    }


def _cluster_of(pod: Object) -> Key:
    return pod["metadata"]["namespace"], pod["metadata"]["labels"]["ray.io/cluster"]


def _finds_no_room(pod: Object) -> bool:
    return any(
        found.get("reason") == "Unschedulable" for found in pod["status"].get("conditions") or ()
    )


def losses(before: Mapping[Key, Seen], after: Mapping[Key, Seen]) -> dict[Key, str]:
    """Return the RayClusters that had pods, with the loss in words; empty words for none.

    RayClusters that moved, or move, are left out: hours or users take pods of suspended ones away,
    and an update that does not wait for KubeRay ends before its pods go.
    """
    found = {}
    for key, was in before.items():
        now = after.get(key, Seen(frozenset(), moving=False))
        if was.pods and not was.moving and not now.moving:
            went = len(was.pods - now.pods)
            found[key] = f"RayCluster {key[1]} lost {went} of {len(was.pods)} pods" if went else ""
    return found


def score_of(
    report: Report, done: Mapping[str, str], before: Mapping[Key, Seen], after: Mapping[Key, Seen]
) -> Score:
    """Return the score of a plan, by the engine's operations by URN, and by the RayClusters."""
    reached = {sitting.key for sitting in report.sitting(Level.DISTURBS)}
    to_go = {sitting.key for sitting in report.sitting(Level.DESTROYS, sure=True)}
    found = losses(before, after)
    missed = [Wrong(key[1], loss) for key, loss in found.items() if loss and key not in reached]
    false_alarms = [
        Wrong(key[1], f"RayCluster {key[1]} keeps its pods")
        for key, loss in found.items()
        if not loss and key in to_go and before[key].scaled <= after[key].scaled
    ]
    right = len(found) - len(missed) - len(false_alarms)
    planned = {change.urn: change.operation for change in report.changes}
    for urn, operation in done.items():
        if operation in ("replace", "delete") and planned.get(urn) != operation:
            name = urn.rsplit("::", 1)[-1]
            missed.append(Wrong(name, f"{name} was {operation}d"))
    waiting = {key: now.waiting for key, now in after.items() if now.waiting and not now.moving}
    missed += [
        Wrong(key[1], f"RayCluster {key[1]} waits for room for {counted(pods, 'pod')}")
        for key, pods in waiting.items()
        if not (key in before and before[key].waiting)
        and not any(key in wait.ray_clusters for wait in report.waits)
    ]
    false_alarms += [
        Wrong(wait.pool, f"nobody waits for room on pool {wait.pool}")
        for wait in report.waits
        if not any(
            now.waiting or now.moving for key, now in after.items() if key in wait.ray_clusters
        )
    ]
    lost = [key[1] for key, loss in found.items() if loss]
    return Score(
        right, lost, missed, false_alarms, [key[1] for key in waiting], [key[1] for key in reached]
    )
