"""Suspend and wake a RayCluster: its pods are deleted and recreated, its settings stay.

Belongs here: the one way to do either, for `berth suspend`, `berth wake` and every other caller.
Does not belong here: when to do it, and whether anything runs (components/programs/jobs.py).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from berth.components.cluster.api import (
    PODS,
    RAY_CLUSTERS,
    ClusterApi,
    ClusterError,
    Object,
    in_namespace,
)
from berth.components.cluster.object_fields import ObjectKey
from berth.components.core.words import counted, is_or_are
from berth.components.programs.decision import SUSPENSION
from berth.components.ray.live.cluster_condition import ClusterCondition, condition_of
from berth.components.ray.live.live_objects import LiveObjects
from berth.components.ray.live.reasons import reasons_of

_PAUSE_SECONDS = 1


def pods_of(api: ClusterApi, key: ObjectKey) -> list[Object]:
    """Return the pods of a RayCluster."""
    namespace, name = key
    return api.list(in_namespace(namespace, PODS), labelSelector=f"ray.io/cluster={name}")[0]


def set_suspended(api: ClusterApi, key: ObjectKey, *, suspended: bool) -> Object:
    """Suspend or wake a RayCluster, and return it.

    KubeRay deletes all pods of a suspended cluster, the head among them, and all running work is
    lost; settings, Service and token stay. KubeRay creates the pods of a woken one again.

    Raises:
        ClusterError: the API server does not answer or refuses, or there is no such RayCluster.
    """
    namespace, name = key
    # KubeRay 1.6 leaves a cluster suspended if `suspend` is removed, so the value is an explicit
    # false.
    path = f"{in_namespace(namespace, RAY_CLUSTERS)}/{name}"
    return api.patch(path, {"spec": {"suspend": suspended}}, SUSPENSION)


def wait_for_pods(
    api: ClusterApi,
    key: ObjectKey,
    *,
    suspended: bool,
    seconds: float,
    report: Callable[[str], None] = lambda _text: None,
) -> list[str]:
    """Wait until a RayCluster is suspended without pods, or is awake with all pods ready.

    Args:
        api: connection to the cluster.
        key: namespace and name of the RayCluster.
        suspended: whether to wait for the suspended RayCluster, or for the one that is awake.
        seconds: time after which the wait ends.
        report: called with the state of the wait after each change.

    Returns:
        Reasons why the goal is not reached in time; empty if it is reached.

    Raises:
        ClusterError: the RayCluster is gone, or the API server does not answer at the end.
    """
    deadline = time.monotonic() + seconds
    shown = ""
    while True:
        try:
            progress = _progress_of(api, key, suspended=suspended)
        except ClusterError as error:
            # An upgrade of the control plane takes minutes.
            if not error.passing or time.monotonic() + _PAUSE_SECONDS > deadline:
                raise
            text = f"waiting: {error}"
        else:
            if progress.reached:
                return []
            if time.monotonic() >= deadline:
                still = [f"pods are still there: {', '.join(progress.terminating)}"]
                return still if progress.terminating else reasons_of(LiveObjects(api, key[0]), key)
            text = str(progress)
        if text != shown:
            report(text)
            shown = text
        time.sleep(_PAUSE_SECONDS)


@dataclass(frozen=True)
class _PodsProgress:
    """State of a RayCluster on its way to be suspended, or awake."""

    condition: ClusterCondition
    reached: bool
    terminating: list[str]
    """Names of the pods of a RayCluster that is being suspended."""

    def __str__(self) -> str:
        if not self.terminating:
            return str(self.condition)
        count = len(self.terminating)
        return f"{counted(count, 'pod')} {is_or_are(count)} still terminating"


def _progress_of(api: ClusterApi, key: ObjectKey, *, suspended: bool) -> _PodsProgress:
    namespace, name = key
    clusters, _ = api.list(
        in_namespace(namespace, RAY_CLUSTERS), fieldSelector=f"metadata.name={name}"
    )
    pods = [pod["metadata"]["name"] for pod in pods_of(api, key)]
    if not clusters:
        raise ClusterError(
            f"RayCluster {namespace}/{name} is gone",
            "look at what is there: berth status -s STACK, with the environment's stack",
        )
    condition = condition_of(clusters[0])
    is_down = condition.state == "suspended"
    if suspended:
        return _PodsProgress(condition, is_down and not pods, pods)
    return _PodsProgress(condition, condition.ready and not is_down, [])
