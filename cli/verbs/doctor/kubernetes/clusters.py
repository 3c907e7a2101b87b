"""Checks of a running cluster: one that the settings name, or that of an environment that is up."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import IPv4Network

from berth.cli.reach.environment import (
    LiveEnvironment,
    NotUpError,
    brought_up,
)
from berth.cli.reach.unknown_namespaces import namespaces_not_in_state, not_in_state_note
from berth.cli.verbs.doctor.findings import CLUSTER, DoctorFinding, Topic
from berth.cli.verbs.doctor.kubernetes.berths import check_berth, check_berths
from berth.cli.verbs.doctor.kubernetes.features import check_features
from berth.cli.verbs.doctor.kubernetes.nodes import check_metadata, check_nodes, check_pools
from berth.cli.verbs.doctor.kubernetes.placement import check_placement
from berth.cli.verbs.doctor.kubernetes.rights import check_rights
from berth.cli.verbs.doctor.kubernetes.road import check_road
from berth.cli.verbs.doctor.kubernetes.stuck import check_releases, check_stuck
from berth.components.berth import BerthInputs
from berth.components.cluster.api import NODES, ClusterApi, ClusterError, Object, unreachable
from berth.components.cluster.kubeconfig import KubeconfigError, read_kubeconfig
from berth.components.core.errors import BerthError
from berth.components.core.project import path_of_setting, shown_path
from berth.components.gke import Addon, ExistingCluster, PoolSettings, why_too_old
from berth.components.operators import problems_of_existing_operators
from berth.stacks.files import stack_file
from berth.stacks.load.stack import EngineerStack, Environment, load_stack
from berth.stacks.settings.environment import USES, EnvironmentSettings

ENVIRONMENT = Topic("environment")

_DAEMON_SETS = "/apis/apps/v1/daemonsets"

_ENFORCERS = {
    "anetd",
    "antrea-agent",
    "calico-node",
    "canal",
    "cilium",
    "kube-router",
    "ovnkube-node",
    "weave-net",
}
"""DaemonSets of agents that enforce NetworkPolicies, by the names in their projects' own manifests.

Dataplane V2 is anetd (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dataplane-v2).
"""

_BY_IDENTITY = {"anetd", "cilium"}
"""Agents that match no range against pods (https://github.com/cilium/cilium/issues/9209)."""


def check_existing(loaded: Environment, existing: ExistingCluster) -> list[DoctorFinding]:
    """Check an existing cluster: kubeconfig, API server, rights of an update, pools, berths."""
    shell = f"KUBECONFIG={existing.kubeconfig} kubectl"
    try:
        kubeconfig = read_kubeconfig(path_of_setting(existing.kubeconfig))
        text = kubeconfig.context(existing.context).as_json()
    except KubeconfigError as error:
        return [CLUSTER.missing(error.problem, f"{shell} config get-contexts")]
    try:
        return list(_check_existing(loaded, ClusterApi(text)))
    except ClusterError as error:
        return [CLUSTER.missing(str(error), f"{shell} get --raw=/readyz")]


def _check_existing(loaded: Environment, api: ClusterApi) -> Iterable[DoctorFinding]:
    settings = loaded.settings
    nodes, _ = api.list(NODES)
    yield _check_version(api, settings)
    yield check_rights(
        api,
        loaded.stack,
        None,
        "kubectl create clusterrolebinding berth --clusterrole=cluster-admin --user=YOU   # run by"
        " an admin",
    )
    yield from check_pools(nodes, _least_nodes(settings.pools))
    yield from check_nodes(nodes, settings)
    yield from check_placement(nodes, loaded.berths, api)
    yield from _check_isolation(api, nodes, settings)
    yield from check_features(api, filter(settings.addon, USES))
    yield from check_releases(api)
    yield from check_stuck(api)
    for problem in problems_of_existing_operators(api, settings):
        yield CLUSTER.missing(str(problem), "")
    yield from check_berths(loaded.berths, api)


def _least_nodes(pools: Mapping[str, PoolSettings]) -> dict[str, int]:
    return {name: pool.nodes_at_least for name, pool in pools.items()}


def check_own(stack: str, berths: Iterable[BerthInputs]) -> list[DoctorFinding]:
    """Check an environment on a cluster of berth's own: releases and berths, if it is up."""
    try:
        live = brought_up(stack)
        error = unreachable(live.kubeconfig)
        if error:
            return [CLUSTER.missing(error.problem, error.of_stack(stack).remedy)]
        api = ClusterApi(live.kubeconfig)
        return [*check_releases(api), *check_stuck(api), *check_berths(berths, api)]
    except NotUpError:
        return []
    except BerthError as error:
        return [
            ENVIRONMENT.unchecked(
                f"secrets and volumes of the berths could not be checked: {error}"
            )
        ]


def check_unknown(stack: str) -> list[DoctorFinding]:
    """Check that the state of an environment that is up knows all of its berths."""
    try:
        live = brought_up(stack)
        namespaces = namespaces_not_in_state(live, ClusterApi(live.kubeconfig))
    except (BerthError, ValueError):
        return []  # other checks say so
    return [ENVIRONMENT.unchecked(*not_in_state_note(namespaces, stack))] if namespaces else []


def check_environment(stack: str) -> list[DoctorFinding]:
    """Check that the environment of an engineer's stack is up and its API server answers."""
    try:
        live = brought_up(stack)
    except BerthError as error:
        if error.remedy:
            return [ENVIRONMENT.missing(error.problem, error.remedy)]
        text, _, remedy = str(error).partition("; run: ")
        return [ENVIRONMENT.missing(text, remedy)]
    loaded = load_stack(stack)
    if not isinstance(loaded, EngineerStack):
        raise TypeError(stack)
    is_up = ENVIRONMENT.fine(f"environment {live.stack} is up")
    try:
        return [is_up, *_check_engineer(loaded, live, ClusterApi(live.kubeconfig))]
    except ClusterError as error:
        return [is_up, CLUSTER.missing(str(error), f"berth status -s {live.stack}")]


def _check_engineer(
    loaded: EngineerStack, live: LiveEnvironment, api: ClusterApi
) -> Iterable[DoctorFinding]:
    """Check what an engineer's stack needs on the cluster of its environment."""
    yield from check_road(loaded.stack, loaded.settings, api)
    berth = loaded.on(live.contract).berth
    if loaded.settings.part != "cluster":
        file = shown_path(stack_file.stack_path(loaded.stack))
        yield check_rights(
            api,
            loaded.stack,
            live.outputs,
            f"open a pull request with {file}   # the admins' CI applies it, and you need no"
            " rights",
        )
        nodes, _ = api.list(NODES)
        yield from check_pools(nodes, _least_nodes(live.contract.pools))
        addons: tuple[Addon, ...] = ("filestore", "secret_sync")
        yield from check_features(api, [addon for addon in addons if USES[addon](berth.settings)])
    yield from check_berth(berth, api)


def _check_version(api: ClusterApi, settings: EnvironmentSettings) -> DoctorFinding:
    try:
        version = str(json.loads(api.text("/version"))["gitVersion"]).removeprefix("v")
    except (ValueError, KeyError, TypeError):
        return CLUSTER.unchecked("the API server answers, but does not report its version")
    answers = f"the API server answers: Kubernetes {version}"
    try:
        problem = why_too_old(settings, version)
    except ValueError:
        return CLUSTER.fine(f"{answers}, which is not a version of GKE")
    return CLUSTER.missing(problem, "") if problem else CLUSTER.fine(answers)


def _check_isolation(
    api: ClusterApi, nodes: Sequence[Object], settings: EnvironmentSettings
) -> Iterable[DoctorFinding]:
    """Check that NetworkPolicies are enforced, and that nodes keep their credentials.

    berth's own clusters do both, by the settings of the cluster and its node pools.
    """
    isolation = settings.isolation_here
    if isolation.network_policies:
        daemon_sets, _ = api.list(_DAEMON_SETS)
        agents = {item["metadata"]["name"] for item in daemon_sets} & _ENFORCERS
        yield _check_enforced(agents)
        if agents & _BY_IDENTITY:
            yield from _check_reachable(isolation.reachable, nodes)
    if isolation.metadata_server:
        yield from check_metadata(nodes, settings.pools)


def _check_enforced(agents: Collection[str]) -> DoctorFinding:
    if agents:
        return CLUSTER.fine(f"NetworkPolicies are enforced by {', '.join(sorted(agents))}")
    return CLUSTER.missing(
        "nothing in the cluster enforces NetworkPolicies: it has no DaemonSet such as anetd"
        " (Dataplane V2) or calico-node, so berths reach each other, and their node's metadata"
        " server",
        "gcloud container clusters update CLUSTER --update-addons=NetworkPolicy=ENABLED"
        " --location=LOCATION   # then --enable-network-policy; or"
        " `isolation: {networkPolicies: false}` to accept it",
    )


def _check_reachable(ranges: Iterable[str], nodes: Iterable[Object]) -> Iterable[DoctorFinding]:
    """Yield ranges of `isolation.reachable` that have pods, which a policy matches by identity."""
    pod_ranges = []
    for node in nodes:
        pod_range = (node.get("spec") or {}).get("podCIDR")
        if pod_range and ":" not in pod_range:
            pod_ranges.append(IPv4Network(pod_range))
    for cidr in ranges:
        if any(IPv4Network(cidr).overlaps(pod_range) for pod_range in pod_ranges):
            yield CLUSTER.warning(
                f"{cidr} of isolation.reachable holds the cluster's pods, and its network policies"
                " match no range against those: berths reach none of these pods by it",
                "environment.isolation.reachableNamespaces: [NAME]",
            )
