"""Score of a plan: what it foresaw for RayClusters and resources, beside what was observed."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import PODS, RAY_CLUSTERS, ClusterApi, ClusterError, Object
from berth.components.cluster.object_fields import ObjectKey, key_of
from berth.components.core.words import counted
from berth.components.plan.effect import Level
from berth.components.ray.live import condition_of
from berth.stacks.preview.report import Report

_CLUSTER_LABEL = "ray.io/cluster"


@dataclass(frozen=True)
class ObservedCluster:
    """RayCluster at one moment: the UIDs of the pods that nobody but an update takes away."""

    pods: frozenset[str]
    moving: bool
    """Suspended, or with an edit that KubeRay has yet to look at."""
    waiting: int = 0
    """Pods for which no node has room."""
    scaled: frozenset[str] = frozenset()
    """UIDs of the workers that Ray's autoscaler takes away at any time."""


Observed = Mapping[ObjectKey, ObservedCluster]
"""RayClusters of a cluster at one moment, by namespace and name."""


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
        wrong = [f"not foreseen: {missed.text}" for missed in self.missed]
        wrong += [f"foreseen, and did not happen: {alarm.text}" for alarm in self.false_alarms]
        return "; ".join(wrong)


def observed_clusters(api: ClusterApi | None) -> Observed | None:
    """Return the RayClusters of a cluster with their pods; None if it cannot be asked."""
    if api is None:
        return None
    try:
        clusters, _ = api.list(RAY_CLUSTERS)
        pods = api.metadata(PODS, labelSelector=_CLUSTER_LABEL)
        pending, _ = api.list(
            PODS, labelSelector=_CLUSTER_LABEL, fieldSelector="status.phase=Pending"
        )
    except ClusterError:
        return None
    waiting = Counter(map(_cluster_of, filter(_finds_no_room, pending)))
    pods_of = defaultdict(list)
    for pod in pods:
        if "deletionTimestamp" not in pod["metadata"]:
            pods_of[_cluster_of(pod)].append(pod)
    observed = {}
    for cluster in clusters:
        key = key_of(cluster)
        own = pods_of[key]
        scaled = [pod for pod in own if _autoscaler_takes(pod, cluster)]
        observed[key] = ObservedCluster(
            pods=_uids(own) - _uids(scaled),
            moving=bool(cluster["spec"].get("suspend")) or not condition_of(cluster).seen,
            waiting=waiting[key],
            scaled=_uids(scaled),
        )
    return observed


def _uids(pods: Sequence[Object]) -> frozenset[str]:
    return frozenset(pod["metadata"]["uid"] for pod in pods)


def _autoscaler_takes(pod: Object, cluster: Object) -> bool:
    """Whether Ray's autoscaler may take a pod away at any time."""
    is_worker = pod["metadata"]["labels"].get("ray.io/node-type") == "worker"
    return is_worker and bool(cluster["spec"].get("enableInTreeAutoscaling"))


def _cluster_of(pod: Object) -> ObjectKey:
    return pod["metadata"]["namespace"], pod["metadata"]["labels"][_CLUSTER_LABEL]


def _finds_no_room(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(condition.get("reason") == "Unschedulable" for condition in conditions)


def losses_of_pods(before: Observed, after: Observed) -> dict[ObjectKey, str]:
    """Return the RayClusters that had pods, with the loss in words; empty words for none.

    RayClusters that moved, or move, are left out: hours or users take pods of suspended ones away,
    and an update that does not wait for KubeRay ends before its pods go.
    """
    losses = {}
    for key, was in before.items():
        now = after.get(key, ObservedCluster(frozenset(), moving=False))
        if was.pods and not was.moving and not now.moving:
            count = len(was.pods - now.pods)
            text = f"RayCluster {key[1]} lost {count} of {len(was.pods)} pods"
            losses[key] = text if count else ""
    return losses


def score_of(report: Report, done: Mapping[str, str], before: Observed, after: Observed) -> Score:
    """Return the score of a plan.

    Args:
        report: the plan, with its meaning.
        done: the engine's operations by URN.
        before: RayClusters before the update.
        after: RayClusters after the update.
    """
    losses = losses_of_pods(before, after)
    reached = {sitting.key for sitting in report.sitting(Level.DISTURBS)}
    missed_losses = [
        Wrong(key[1], loss) for key, loss in losses.items() if loss and key not in reached
    ]
    kept = list(_kept_against_the_plan(report, losses, before, after))
    waiting = [key for key, now in after.items() if now.waiting and not now.moving]
    return Score(
        right=len(losses) - len(missed_losses) - len(kept),
        lost=[key[1] for key, loss in losses.items() if loss],
        missed=[
            *missed_losses,
            *_missed_operations(report, done),
            *_missed_waits(report, before, after, waiting),
        ],
        false_alarms=[*kept, *_waits_that_did_not_happen(report, after)],
        waiting=[key[1] for key in waiting],
        foreseen=[key[1] for key in reached],
    )


def _kept_against_the_plan(
    report: Report, losses: Mapping[ObjectKey, str], before: Observed, after: Observed
) -> Iterator[Wrong]:
    """Yield RayClusters that keep all pods, though the plan was sure of a loss."""
    sure = {sitting.key for sitting in report.sitting(Level.DESTROYS, sure=True)}
    for key, loss in losses.items():
        if not loss and key in sure and before[key].scaled <= after[key].scaled:
            yield Wrong(key[1], f"RayCluster {key[1]} keeps its pods")


def _missed_operations(report: Report, done: Mapping[str, str]) -> Iterator[Wrong]:
    """Yield resources that were replaced or deleted, and for which the plan says something else."""
    planned = {change.urn: change.operation for change in report.changes}
    for urn, operation in done.items():
        if operation in ("replace", "delete") and planned.get(urn) != operation:
            name = urn.rsplit("::", 1)[-1]
            yield Wrong(name, f"{name} was {operation}d")


def _missed_waits(
    report: Report, before: Observed, after: Observed, waiting: Sequence[ObjectKey]
) -> Iterator[Wrong]:
    """Yield RayClusters whose pods wait for room since the update, against the plan."""
    foreseen: set[ObjectKey] = set()
    for wait in report.shortages:
        foreseen.update(wait.ray_clusters)
    for key in waiting:
        waited_before = key in before and before[key].waiting
        if not waited_before and key not in foreseen:
            pods = counted(after[key].waiting, "pod")
            yield Wrong(key[1], f"RayCluster {key[1]} waits for room for {pods}")


def _waits_that_did_not_happen(report: Report, after: Observed) -> Iterator[Wrong]:
    for wait in report.shortages:
        waiters = [now for key, now in after.items() if key in wait.ray_clusters]
        if not any(now.waiting or now.moving for now in waiters):
            yield Wrong(wait.pool, f"nobody waits for room on pool {wait.pool}")
