"""Checks of objects on a cluster that wait for something that may never come."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from berth.cli.verbs.doctor.findings import CLUSTER, DoctorFinding
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
from berth.components.operators import OPERATORS, pending_releases

_SOON = timedelta(minutes=1)
"""Time in which a controller that runs lets an object go."""

_OF_KUBERAY = "ray.io/"
_OPERATOR = "app.kubernetes.io/name=kuberay-operator"


def check_releases(api: ClusterApi) -> list[DoctorFinding]:
    """Check that no update was killed inside Helm."""
    try:
        releases = pending_releases(api, [operator.release for operator in OPERATORS])
    except RefusedError:
        return []  # the rights of an update are another finding
    if not releases:
        return []
    return [
        CLUSTER.unchecked(
            f"Helm is at work on {', '.join(releases)}, or an update was killed there; `berth up`"
            " repairs it"
        )
    ]


def check_stuck(api: ClusterApi, now: datetime | None = None) -> list[DoctorFinding]:
    """Return what has waited for its deletion for over a minute, and what has too little memory."""
    moment = now or datetime.now(UTC)
    try:
        operators, _ = api.list(PODS, labelSelector=_OPERATOR)
        findings = list(_killed_operators(operators))
        held = list(_held_objects(api, moment))
        # An object that is held holds its namespace.
        findings += held or _ending_namespaces(api, moment)
        return [*findings, *_started_by_kueue(api)]
    except RefusedError:
        return []  # the rights of an update are another finding


def _held_objects(api: ClusterApi, now: datetime) -> Iterable[DoctorFinding]:
    """Yield Ray's objects of berths that a finalizer holds."""
    owners = owners_of(api)
    for path in (RAY_JOBS, RAY_SERVICES, RAY_CLUSTERS):
        kind = path.rpartition("/")[2].removesuffix("s")
        for item in api.list(path)[0]:
            if (
                owners.owner_of(item)
                and item["metadata"].get("finalizers")
                and _is_overdue(item, now)
            ):
                yield _held_object(kind, item)


def _held_object(kind: str, item: Object) -> DoctorFinding:
    metadata = item["metadata"]
    name = metadata["name"]
    namespace = metadata["namespace"]
    finalizers = ", ".join(metadata["finalizers"])
    being_deleted = f"{kind} {name} in namespace {namespace} is being deleted"
    let_go = (
        f"kubectl patch {kind} {name} --namespace={namespace} --type=merge"
        ' --patch=\'{"metadata":{"finalizers":null}}\''
    )
    if all(finalizer.startswith(_OF_KUBERAY) for finalizer in metadata["finalizers"]):
        return CLUSTER.warning(
            f"{being_deleted}, and finalizer {finalizers} of KubeRay holds it: is its operator"
            " running? Until then the namespace, and an update that deletes it, wait",
            f"kubectl get pods --all-namespaces --selector={_OPERATOR}   # without one, let the"
            f" object go: {let_go}",
        )
    return CLUSTER.warning(
        f"{being_deleted}, and finalizer {finalizers} holds it, whose controller may be gone",
        let_go,
    )


def _ending_namespaces(api: ClusterApi, now: datetime) -> Iterable[DoctorFinding]:
    """Yield berths' namespaces that wait for something else, in the API server's words."""
    for item in api.list(NAMESPACES, labelSelector=ENVIRONMENT_LABEL)[0]:
        if not _is_overdue(item, now):
            continue
        conditions = (item.get("status") or {}).get("conditions") or ()
        reasons = [
            str(condition.get("message"))
            for condition in conditions
            if condition.get("status") == "True"
        ]
        name = item["metadata"]["name"]
        yield CLUSTER.warning(
            f"namespace {name} is being deleted, and waits:"
            f" {'; '.join(reasons) or 'no reason is given'}",
            f"kubectl get namespace {name} --output=yaml",
        )


def _started_by_kueue(api: ClusterApi) -> Iterable[DoctorFinding]:
    """Yield the berths with a lifecycle that Kueue starts and suspends, in one finding."""
    owners = owners_of(api)
    names = []
    for item in api.list(RAY_CLUSTERS)[0]:
        owner = owners.owner_of(item)
        if owner and owner.lifecycle and by_kueue(item["metadata"]):
            names.append(owner.name)
    if names:
        yield CLUSTER.warning(
            f"Kueue starts and suspends {', '.join(sorted(names))}: it starts again at once what"
            " the keeper suspends by their `lifecycle`",
            "kubectl get workloads.kueue.x-k8s.io --all-namespaces   # who waits for what; or take"
            " `lifecycle` out",
        )


def _killed_operators(operators: Iterable[Object]) -> Iterable[DoctorFinding]:
    """Yield the KubeRay operators that were killed for want of memory."""
    for pod in operators:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            terminated = (container.get("lastState") or {}).get("terminated") or {}
            if terminated.get("reason") == "OOMKilled":
                name = pod["metadata"]["name"]
                yield CLUSTER.missing(
                    f"the KubeRay operator ({name}) was killed for want of memory,"
                    f" {container.get('restartCount')} times restarted: meanwhile nothing is"
                    " created or repaired",
                    "environment.operators.kuberay.values: {resources: {limits: {cpu: 1, memory:"
                    " 2Gi}, requests: {cpu: 1, memory: 2Gi}}}",
                )


def _is_overdue(item: Object, now: datetime) -> bool:
    begun = item["metadata"].get("deletionTimestamp")
    return bool(begun) and datetime.fromisoformat(begun) + _SOON < now
