"""Checks for what holds others up: deletions that wait, an operator that dies, and Kueue."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.cluster.api import (
    NAMESPACES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterApi,
    Object,
    RefusedError,
)
from berth.components.cluster.owned import owners_of
from berth.components.core.owner import ENVIRONMENT_LABEL
from berth.components.lifecycle import by_kueue

CLUSTER = Topic("cluster")

_SOON = timedelta(minutes=1)
"""Time in which a controller that runs lets an object go."""

_OF_KUBERAY = "ray.io/"
_OPERATOR = "app.kubernetes.io/name=kuberay-operator"


def check_stuck(api: ClusterApi, now: datetime | None = None) -> list[Finding]:
    """Return what has waited for its deletion for over a minute, and what has too little memory."""
    moment = now or datetime.now(UTC)
    try:
        operators, _ = api.list(PODS, labelSelector=_OPERATOR)
        held = list(_held(api, moment))
        return [*_killed(operators), *held, *([] if held else _namespaces(api, moment)), *_overruled(api)]
    except RefusedError:
        return []  # the rights of an update are another finding


def _held(api: ClusterApi, now: datetime) -> Iterable[Finding]:
    """Yield Ray's objects of berths that a finalizer holds, which hold their namespaces in turn."""
    owners = owners_of(api)
    for path in (RAY_JOBS, RAY_SERVICES, RAY_CLUSTERS):
        kind = path.rpartition("/")[2].removesuffix("s")
        for item in api.list(path)[0]:
            metadata = item["metadata"]
            if not owners.of(item) or not metadata.get("finalizers") or not _overdue(item, now):
                continue
            names = ", ".join(metadata["finalizers"])
            by_kuberay = all(name.startswith(_OF_KUBERAY) for name in metadata["finalizers"])
            facts = {"kind": kind, "name": metadata["name"], "namespace": metadata["namespace"], "finalizers": names}
            yield CLUSTER.found("held-by-kuberay" if by_kuberay else "held", **facts)


def _namespaces(api: ClusterApi, now: datetime) -> Iterable[Finding]:
    """Yield berths' namespaces that wait for something else, in the API server's words."""
    for item in api.list(NAMESPACES, labelSelector=ENVIRONMENT_LABEL)[0]:
        if _overdue(item, now):
            conditions = (item.get("status") or {}).get("conditions") or ()
            reasons = [str(entry.get("message")) for entry in conditions if entry.get("status") == "True"]
            name = item["metadata"]["name"]
            yield CLUSTER.found("ending", namespace=name, reasons="; ".join(reasons) or "no reason is given")


def _overruled(api: ClusterApi) -> Iterable[Finding]:
    """Yield the berths with a lifecycle that Kueue starts and suspends, in one finding."""
    owners = owners_of(api)
    berths = ((owners.of(item), item["metadata"]) for item in api.list(RAY_CLUSTERS)[0])
    names = [owner.name for owner, metadata in berths if owner and owner.lifecycle and by_kueue(metadata)]
    if names:
        yield CLUSTER.found("by-kueue", names=", ".join(sorted(names)))


def _killed(operators: Iterable[Object]) -> Iterable[Finding]:
    """Yield the KubeRay operator that was killed for want of memory."""
    for pod in operators:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            if ((container.get("lastState") or {}).get("terminated") or {}).get("reason") == "OOMKilled":
                yield CLUSTER.found("out-of-memory", name=pod["metadata"]["name"], count=container.get("restartCount"))


def _overdue(item: Object, now: datetime) -> bool:
    begun = item["metadata"].get("deletionTimestamp")
    return bool(begun) and datetime.fromisoformat(begun) + _SOON < now
