"""Checks of a running cluster: one that the settings name, or that of an environment that is up."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network

from berth.cli.reach.environment import NotUpError, brought_up
from berth.cli.reach.unknown_namespaces import namespaces_not_in_state, not_in_state_note
from berth.cli.verbs.doctor.berths import check_berth, check_berths, check_features
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.nodes import check_metadata, check_nodes, check_pools
from berth.cli.verbs.doctor.rights import check_rights, check_road
from berth.components.berth import BerthInputs
from berth.components.cluster.api import (
    NAMESPACES,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterApi,
    ClusterError,
    Object,
    RefusedError,
    unreachable,
)
from berth.components.cluster.kubeconfig import KubeconfigError, read_kubeconfig
from berth.components.cluster.owned import owners_of
from berth.components.core import fast_yaml
from berth.components.core.errors import BerthError
from berth.components.core.owner import ENVIRONMENT_LABEL
from berth.components.core.project import path_of_setting, shown_path
from berth.components.gke import Addon, ExistingCluster, why_too_old
from berth.components.lifecycle import by_kueue
from berth.components.operators import OPERATORS
from berth.components.operators.found import found_on
from berth.components.operators.record import pending
from berth.stacks.files import stack_file
from berth.stacks.load.stack import EngineerStack, Environment, load_stack
from berth.stacks.settings.environment import USES, EnvironmentSettings

CLUSTER, ENVIRONMENT = Topic("cluster"), Topic("environment")

_GRANT = (
    "kubectl create clusterrolebinding berth --clusterrole=cluster-admin --user=YOU   # run by an"
    " admin"
)

_DAEMON_SETS = "/apis/apps/v1/daemonsets"

_ENFORCERS = set(fast_yaml.load_beside(__file__)["enforcers"])
_BY_IDENTITY = set(fast_yaml.load_beside(__file__)["by_identity"])

_SOON = timedelta(minutes=1)
"""Time in which a controller that runs lets an object go."""

_OF_KUBERAY = "ray.io/"
_OPERATOR = "app.kubernetes.io/name=kuberay-operator"


def check_existing(loaded: Environment, existing: ExistingCluster) -> list[Finding]:
    """Check an existing cluster: kubeconfig, API server, rights of an update, pools, berths."""
    stack, settings, berths = loaded.stack, loaded.settings, loaded.berths
    try:
        kubeconfig = read_kubeconfig(path_of_setting(existing.kubeconfig))
        text = kubeconfig.context(existing.context).as_json()
    except KubeconfigError as error:
        return [
            CLUSTER.found("wrong-kubeconfig", problem=error.problem, kubeconfig=existing.kubeconfig)
        ]
    try:
        api = ClusterApi(text)
        nodes, _ = api.list(NODES)
        return [
            _version(api, settings),
            check_rights(api, stack, None, _GRANT),
            *check_pools(
                nodes, {name: pool.nodes_at_least for name, pool in settings.pools.items()}
            ),
            *check_nodes(nodes, settings),
            *_isolation(api, nodes, settings),
            *check_features(api, filter(settings.addon, USES)),
            *check_releases(api),
            *check_stuck(api),
            *(CLUSTER.missing(str(problem)) for problem in found_on(api, settings)),
            *check_berths(berths, api),
        ]
    except ClusterError as error:
        return [CLUSTER.found("no-answer", problem=error, kubeconfig=existing.kubeconfig)]


def check_own(stack: str, berths: Iterable[BerthInputs]) -> list[Finding]:
    """Check an environment on a cluster of berth's own: releases and berths, if it is up."""
    try:
        up = brought_up(stack)
        if error := unreachable(up.kubeconfig):
            return [CLUSTER.missing(error.problem, error.of_stack(stack).remedy)]
        api = ClusterApi(up.kubeconfig)
        return [*check_releases(api), *check_stuck(api), *check_berths(berths, api)]
    except NotUpError:
        return []
    except BerthError as error:
        return [ENVIRONMENT.found("berths-unknown", reason=error)]


def check_unknown(stack: str) -> list[Finding]:
    """Check that the state of an environment that is up knows all of its berths."""
    try:
        up = brought_up(stack)
        found = namespaces_not_in_state(up, ClusterApi(up.kubeconfig))
    except (BerthError, ValueError):
        return []  # other checks say so
    return [ENVIRONMENT.unchecked(*not_in_state_note(found, stack))] if found else []


def check_releases(api: ClusterApi) -> list[Finding]:
    """Check that no update was killed inside Helm."""
    try:
        left = pending(api, [operator.release for operator in OPERATORS])
    except RefusedError:
        return []  # the rights of an update are another finding
    return [CLUSTER.found("killed", releases=", ".join(left))] if left else []


def _version(api: ClusterApi, settings: EnvironmentSettings) -> Finding:
    try:
        version = str(json.loads(api.text("/version"))["gitVersion"]).removeprefix("v")
    except (ValueError, KeyError, TypeError):
        return CLUSTER.found("no-version")
    try:
        problem = why_too_old(settings, version)
    except ValueError:
        return CLUSTER.found("other-version", version=version)
    return CLUSTER.missing(problem) if problem else CLUSTER.found("version", version=version)


def _isolation(
    api: ClusterApi, nodes: Sequence[Object], settings: EnvironmentSettings
) -> Iterable[Finding]:
    """Check that NetworkPolicies are enforced, and that nodes keep their credentials.

    berth's own clusters do both, by the settings of the cluster and its node pools.
    """
    isolation = settings.isolation_here
    if isolation.network_policies:
        agents = sorted(
            {item["metadata"]["name"] for item in api.list(_DAEMON_SETS)[0]} & _ENFORCERS
        )
        yield CLUSTER.found("enforced" if agents else "not-enforced", agents=", ".join(agents))
        pods = [str((node.get("spec") or {}).get("podCIDR") or ":") for node in nodes]
        ranges = [IPv4Network(cidr) for cidr in pods if ":" not in cidr]
        for cidr in isolation.reachable if _BY_IDENTITY & set(agents) else ():
            if any(map(IPv4Network(cidr).overlaps, ranges)):
                yield CLUSTER.found("range-of-pods", range=cidr)
    if isolation.metadata_server:
        yield from check_metadata(nodes, settings.pools)


def check_environment(stack: str) -> list[Finding]:
    """Check that the environment of an engineer's stack is up and its API server answers."""
    try:
        up = brought_up(stack)
    except BerthError as error:
        text, _, remedy = str(error).partition("; run: ")
        return [
            (
                ENVIRONMENT.missing(error.problem, error.remedy)
                if error.remedy
                else ENVIRONMENT.missing(text, remedy)
            )
        ]
    loaded = load_stack(stack)
    if not isinstance(loaded, EngineerStack):
        raise TypeError(stack)
    settings = loaded.settings
    there = ENVIRONMENT.found("up", stack=up.stack)
    try:
        api = ClusterApi(up.kubeconfig)
        road = check_road(stack, settings, api)
        berth = loaded.on(up.contract).berth
        inside = check_berth(berth, api)
        if settings.part == "cluster":
            return [there, *road, *inside]
        addons: tuple[Addon, ...] = ("filestore", "secret_sync")
        features = check_features(api, [addon for addon in addons if USES[addon](berth.settings)])
        file = shown_path(stack_file.stack_path(stack))
        remedy = (
            f"open a pull request with {file}   # the admins' CI applies it, and you need no rights"
        )
        nodes, _ = api.list(NODES)
        pools = check_pools(
            nodes, {name: pool.nodes_at_least for name, pool in up.contract.pools.items()}
        )
        return [
            there,
            *road,
            check_rights(api, stack, up.outputs, remedy),
            *pools,
            *features,
            *inside,
        ]
    except ClusterError as error:
        return [there, CLUSTER.found("lost", problem=error, stack=up.stack)]


def check_stuck(api: ClusterApi, now: datetime | None = None) -> list[Finding]:
    """Return what has waited for its deletion for over a minute, and what has too little memory."""
    moment = now or datetime.now(UTC)
    try:
        operators, _ = api.list(PODS, labelSelector=_OPERATOR)
        held = list(_held(api, moment))
        return [
            *_killed(operators),
            *held,
            *([] if held else _namespaces(api, moment)),
            *_overruled(api),
        ]
    except RefusedError:
        return []  # the rights of an update are another finding


def _held(api: ClusterApi, now: datetime) -> Iterable[Finding]:
    """Yield Ray's objects of berths that a finalizer holds, which hold their namespaces in turn."""
    owners = owners_of(api)
    for path in (RAY_JOBS, RAY_SERVICES, RAY_CLUSTERS):
        kind = path.rpartition("/")[2].removesuffix("s")
        for item in api.list(path)[0]:
            metadata = item["metadata"]
            if (
                not owners.owner_of(item)
                or not metadata.get("finalizers")
                or not _overdue(item, now)
            ):
                continue
            names = ", ".join(metadata["finalizers"])
            by_kuberay = all(name.startswith(_OF_KUBERAY) for name in metadata["finalizers"])
            facts = {
                "kind": kind,
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "finalizers": names,
            }
            yield CLUSTER.found("held-by-kuberay" if by_kuberay else "held", **facts)


def _namespaces(api: ClusterApi, now: datetime) -> Iterable[Finding]:
    """Yield berths' namespaces that wait for something else, in the API server's words."""
    for item in api.list(NAMESPACES, labelSelector=ENVIRONMENT_LABEL)[0]:
        if _overdue(item, now):
            conditions = (item.get("status") or {}).get("conditions") or ()
            reasons = [
                str(entry.get("message")) for entry in conditions if entry.get("status") == "True"
            ]
            name = item["metadata"]["name"]
            yield CLUSTER.found(
                "ending", namespace=name, reasons="; ".join(reasons) or "no reason is given"
            )


def _overruled(api: ClusterApi) -> Iterable[Finding]:
    """Yield the berths with a lifecycle that Kueue starts and suspends, in one finding."""
    owners = owners_of(api)
    berths = ((owners.owner_of(item), item["metadata"]) for item in api.list(RAY_CLUSTERS)[0])
    names = [
        owner.name for owner, metadata in berths if owner and owner.lifecycle and by_kueue(metadata)
    ]
    if names:
        yield CLUSTER.found("by-kueue", names=", ".join(sorted(names)))


def _killed(operators: Iterable[Object]) -> Iterable[Finding]:
    """Yield the KubeRay operator that was killed for want of memory."""
    for pod in operators:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            if ((container.get("lastState") or {}).get("terminated") or {}).get(
                "reason"
            ) == "OOMKilled":
                yield CLUSTER.found(
                    "out-of-memory",
                    name=pod["metadata"]["name"],
                    count=container.get("restartCount"),
                )


def _overdue(item: Object, now: datetime) -> bool:
    begun = item["metadata"].get("deletionTimestamp")
    return bool(begun) and datetime.fromisoformat(begun) + _SOON < now
