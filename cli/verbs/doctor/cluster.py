"""Checks of a running cluster: one that the settings name, or that of an environment that is up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from berth.cli.reach.environment import NotUpError, brought_up, namespaces_not_in_state, not_in_state_note
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.gpu_nodes import check_nodes
from berth.cli.verbs.doctor.isolation import check_isolation
from berth.cli.verbs.doctor.registered import WouldFailError, types_of
from berth.cli.verbs.doctor.roads import check_road, load_engineer, may
from berth.cli.verbs.doctor.secrets import check_secrets, check_secrets_of_all
from berth.cli.verbs.doctor.volumes import BUCKETS, SECRET_MANAGER, SHARES, check_claims, check_features
from berth.components.berth import BerthInputs
from berth.components.cluster.api import NODES, ClusterApi, ClusterError, RefusedError, unreachable
from berth.components.cluster.pods import is_ready
from berth.components.core.errors import BerthError
from berth.components.core.words import counted
from berth.components.gke import ExistingCluster, too_old
from berth.components.hardware.names import POOL_LABEL
from berth.components.operators import OPERATORS
from berth.components.operators.record import pending
from berth.components.ray.variables import from_secret_manager
from berth.components.ray.volumes import mounts_shares
from berth.stacks.files import stack_file
from berth.stacks.load.stack import Environment
from berth.stacks.program.login import KubeconfigError, one_context
from berth.stacks.settings.environment import EnvironmentSettings

CLUSTER, ENVIRONMENT = Topic("cluster"), Topic("environment")

_BY_CHARTS = (
    ("create", "", "secrets"),
    ("create", "", "serviceaccounts"),
    ("create", "", "services"),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("create", "apps", "daemonsets"),
    ("create", "apps", "deployments"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    ("create", "rbac.authorization.k8s.io", "clusterroles"),
    ("create", "rbac.authorization.k8s.io", "rolebindings"),
    ("create", "rbac.authorization.k8s.io", "roles"),
)
"""Rights that Helm needs for the operators' charts and its own records."""

_TO_WAIT = (
    ("list", "", "events"),
    ("list", "", "nodes"),
    ("list", "", "pods"),
    ("watch", "ray.io", "rayclusters"),
)
"""Rights for waiting until RayClusters are ready, and for the reasons why one is not."""

Right = tuple[str, str, str]
"""Verb, API group and resource: `create`, `batch`, `cronjobs`."""


def rights_for(types: Iterable[str]) -> list[Right]:
    """Return the rights that an update needs on a cluster.

    Args:
        types: Pulumi's types of the objects that the stack's program registers.
    """
    rights: set[Right] = set(_TO_WAIT)
    for registered in types:
        _, group_version, kind = registered.split(":")
        group = group_version.partition("/")[0]
        if group == "helm.sh":
            rights.update(_BY_CHARTS)
        else:
            rights.add(("create", "" if group == "core" else group, _resource(kind)))
    return sorted(rights)


def _resource(kind: str) -> str:
    """Return a kind's resource name: `networkpolicies`, `priorityclasses`."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def check_existing(loaded: Environment, existing: ExistingCluster) -> list[Finding]:
    """Check an existing cluster: kubeconfig, API server, rights of an update, pools, berths."""
    stack, settings, berths = loaded.stack, loaded.settings, loaded.berths
    uses = {BUCKETS: settings.gcs_fuse, SHARES: settings.filestore, SECRET_MANAGER: settings.secret_sync}
    features = [feature for feature, used in uses.items() if used]
    try:
        text, _ = one_context(stack_file.path_of(existing.kubeconfig), existing.context)
    except KubeconfigError as error:
        return [CLUSTER.missing(error.problem, f"KUBECONFIG={existing.kubeconfig} kubectl config get-contexts")]
    try:
        api = ClusterApi(text)
        nodes, _ = api.list(NODES)
        return [
            _version(api, settings),
            _rights(api, stack, None, _OF_ENVIRONMENT),
            *_pools(nodes, {name: pool.nodes_at_least for name, pool in settings.pools.items()}),
            *check_nodes(nodes, settings),
            *check_isolation(api, nodes, settings.isolation_here, settings.pools),
            *check_features(api, features),
            *check_releases(api),
            *check_berths(berths, api),
        ]
    except ClusterError as error:
        return [CLUSTER.missing(str(error), f"KUBECONFIG={existing.kubeconfig} kubectl get --raw=/readyz")]


def check_berths(berths: Iterable[BerthInputs], api: ClusterApi) -> list[Finding]:
    """Check what the pods of an environment's own berths need: secret values, and claims.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    berths = list(berths)
    return [*check_secrets_of_all(berths, api), *(finding for berth in berths for finding in check_claims(berth, api))]


def check_own(stack: str, berths: Iterable[BerthInputs]) -> list[Finding]:
    """Check an environment on a cluster of berth's own: releases and berths, if it is up."""
    try:
        up = brought_up(stack)
        if error := unreachable(up.kubeconfig):
            return [CLUSTER.missing(error.problem, error.of_stack(stack).remedy)]
        api = ClusterApi(up.kubeconfig)
        return [*check_releases(api), *check_berths(berths, api)]
    except NotUpError:
        return []
    except BerthError as error:
        return [ENVIRONMENT.unchecked(f"secrets and volumes of the berths could not be checked: {error}")]


def check_state(stack: str) -> list[Finding]:
    """Check that the state of an environment that is up knows all of its berths."""
    try:
        up = brought_up(stack)
        found = namespaces_not_in_state(up, ClusterApi(up.kubeconfig))
    except (BerthError, ValueError):
        return []  # other checks say so
    return [ENVIRONMENT.unchecked(*not_in_state_note(found, stack))] if found else []


def check_releases(api: ClusterApi) -> list[Finding]:
    """Check that no update was killed inside Helm.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    try:
        left = pending(api, [operator.release for operator in OPERATORS])
    except RefusedError:
        return []  # the rights of an update are another finding
    text = "Helm is at work on {}, or an update was killed there; `berth up` repairs it"
    return [CLUSTER.unchecked(text.format(", ".join(left)))] if left else []


def _version(api: ClusterApi, settings: EnvironmentSettings) -> Finding:
    answer = api.text("/version")
    try:
        version = str(json.loads(answer)["gitVersion"]).removeprefix("v")
    except (ValueError, KeyError, TypeError):
        return CLUSTER.unchecked("the API server answers, but does not report its version")
    try:
        problem = too_old(settings, version)
    except ValueError:
        return CLUSTER.fine(f"the API server answers: Kubernetes {version}, which is not a version of GKE")
    return CLUSTER.missing(problem) if problem else CLUSTER.fine(f"the API server answers: Kubernetes {version}")


_OF_ENVIRONMENT = "kubectl create clusterrolebinding berth --clusterrole=cluster-admin --user=YOU   # run by an admin"


def _rights(api: ClusterApi, stack: str, outputs: dict[str, Any] | None, remedy: str) -> Finding:
    """Check the rights of an update of a stack.

    Args:
        api: the cluster.
        stack: the stack.
        outputs: outputs of an engineer's environment.
        remedy: command that grants the rights.
    """
    try:
        rights = rights_for(types_of(stack, outputs))
    except WouldFailError as error:
        return CLUSTER.missing(str(error))
    except BerthError as error:
        return CLUSTER.unchecked(f"your rights in the cluster could not be checked: {error}")
    lacking = [f"{verb} {resource}" for verb, group, resource in rights if not may(api, verb, group, resource)]
    if lacking:
        return CLUSTER.missing(f"in the cluster you may not {', '.join(lacking)}", remedy)
    return CLUSTER.fine("you have the rights in the cluster that an update needs")


def _pools(nodes: Iterable[dict[str, Any]], least: dict[str, int]) -> Iterable[Finding]:
    """Check that each declared pool has ready nodes, if it always has nodes."""
    of_pool: dict[str, list[bool]] = {name: [] for name in least}
    others = set()
    for node in nodes:
        name = node["metadata"]["labels"].get(POOL_LABEL)
        if name in of_pool:
            of_pool[name].append(is_ready(node))
        elif name:
            others.add(name)
    for name, ready in of_pool.items():
        if not ready and least[name]:
            has = f"; its pools are {', '.join(sorted(others))}" if others else ""
            text = f"no node has the label {POOL_LABEL}={name}{has}"
            yield CLUSTER.missing(text, f"kubectl get nodes --label-columns={POOL_LABEL}")
        elif not all(ready):
            text = f"pool {name}: {ready.count(False)} of {len(ready)} nodes are not ready"
            yield CLUSTER.missing(text, f"kubectl get nodes --selector={POOL_LABEL}={name}")
        else:
            has = f"{counted(len(ready), 'node')}, all ready" if ready else "no nodes now"
            yield CLUSTER.fine(f"pool {name}: {has}")


def check_environment(stack: str) -> list[Finding]:
    """Check that the environment of an engineer's stack is up and its API server answers."""
    try:
        up = brought_up(stack)
    except BerthError as error:
        text, _, remedy = str(error).partition("; run: ")
        return [ENVIRONMENT.missing(error.problem, error.remedy) if error.remedy else ENVIRONMENT.missing(text, remedy)]
    loaded = load_engineer(stack)
    settings = loaded.settings
    there = ENVIRONMENT.fine(f"environment {up.stack} is up")
    least = {name: pool.nodes_at_least for name, pool in up.contract.pools.items()}
    file = stack_file.shown(stack_file.stack_path(stack))
    remedy = f"open a pull request with {file}   # the admins' CI applies it, and you need no rights"
    try:
        api = ClusterApi(up.kubeconfig)
        road = check_road(stack, settings, api)
        berth = loaded.on(up.contract).berth
        inside = [*check_secrets(berth, api), *check_claims(berth, api)]
        if settings.part == "cluster":
            return [there, *road, *inside]
        uses = {
            SHARES: mounts_shares(berth.settings.volumes),
            SECRET_MANAGER: from_secret_manager(berth.settings.secrets),
        }
        features = check_features(api, [feature for feature, used in uses.items() if used])
        nodes, _ = api.list(NODES)
        rights = _rights(api, stack, up.outputs, remedy)
        return [there, *road, rights, *_pools(nodes, least), *features, *inside]
    except ClusterError as error:
        return [there, CLUSTER.missing(str(error), f"berth status -s {up.stack}")]
