"""Suspending a RayCluster and waking it: its pods go and come, its settings stay.

Belongs here: the one way to do either, for `berth suspend`, `berth wake` and whatever does it by itself. Does not belong here:
when to do it, and whether anything runs (components/programs/jobs.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from berth.components.cluster.api import PODS, RAY_CLUSTERS, ClusterApi, ClusterError, Object, within
from berth.components.ray.condition import condition_of
from berth.components.ray.readiness import Key, reasons_of

FIELD_MANAGER = "berth-suspension"
"""Owns `spec.suspend`. No stack sets that field, so that neither `pulumi up` nor `pulumi refresh` has anything to say about it."""

_WATCH_SECONDS = 2


def is_suspended(cluster: Object) -> bool:
    """Whether a RayCluster is meant to be suspended; its pods may still be going."""
    return bool(cluster["spec"].get("suspend"))


def suspend(api: ClusterApi, key: Key) -> Object:
    """Have KubeRay remove a RayCluster's pods, its head among them; the RayCluster.

    What runs on it is lost. Its settings, its Service and its token stay.

    Raises:
        ClusterError: the API server can't be asked, refuses, or there is no such RayCluster.
    """
    return _set(api, key, suspended=True)


def wake(api: ClusterApi, key: Key) -> Object:
    """Have KubeRay make the pods of a suspended RayCluster again; the RayCluster.

    Raises:
        ClusterError: the API server can't be asked, refuses, or there is no such RayCluster.
    """
    return _set(api, key, suspended=False)


def _set(api: ClusterApi, key: Key, *, suspended: bool) -> Object:
    """`false` is not the same as no value: KubeRay 1.6 leaves a cluster suspended whose `suspend` is taken away."""
    namespace, name = key
    path = f"{within(namespace, RAY_CLUSTERS)}/{name}"
    return api.patch(path, {"spec": {"suspend": suspended}}, FIELD_MANAGER)


def wait(
    api: ClusterApi, key: Key, *, suspended: bool, seconds: float, report: Callable[[str], None] = lambda _text: None
) -> list[str]:
    """Wait until a RayCluster is suspended with all its pods gone, or is awake with all of them ready.

    Args:
        api: its cluster.
        key: its namespace and name.
        suspended: what is waited for.
        seconds: for how long.
        report: told how it stands whenever that changes.

    Returns:
        Why it is not so, when the time has passed; empty if it is.

    Raises:
        ClusterError: the API server can't be asked.
    """
    namespace, name = key
    deadline = time.monotonic() + seconds
    told = ""
    while True:
        found, version = api.list(within(namespace, RAY_CLUSTERS), fieldSelector=f"metadata.name={name}")
        if not found:
            raise ClusterError(f"RayCluster {namespace}/{name} is gone")
        pods, _ = api.list(within(namespace, PODS), labelSelector=f"ray.io/cluster={name}")
        condition = condition_of(found[0])
        left = [pod["metadata"]["name"] for pod in pods]
        if suspended and condition.state == "suspended" and not left:
            return []
        if not suspended and condition.ready and condition.state != "suspended":
            return []
        text = f"{len(left)} pods are going" if suspended and left else str(condition)
        if text != told:
            report(text)
            told = text
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return [f"pods are still there: {', '.join(left)}"] if suspended and left else reasons_of(api, key)
        # Pods that go change the RayCluster's status in the end: its own watch is enough, and short ones keep the deadline.
        watched = api.watch(
            within(namespace, RAY_CLUSTERS),
            version,
            max(1, int(min(_WATCH_SECONDS, remaining))),
            fieldSelector=f"metadata.name={name}",
        )
        next(iter(watched), None)
