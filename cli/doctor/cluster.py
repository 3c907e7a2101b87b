"""A cluster that is there: existing ones of the settings, and those of environments that are up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import yaml

from cli.doctor.findings import Finding, Topic
from cli.environment import StatusError, brought_up
from components.cluster_api import NODES, ClusterApi, ClusterError
from components.nodes import is_ready
from components.placement import POOL_LABEL
from stacks import stack_file
from stacks.claims_api import claiming
from stacks.settings.cluster import ExistingCluster
from stacks.settings.environment import EnvironmentSettings
from stacks.settings.gke_versions import too_old

CLUSTER, ENVIRONMENT = Topic("cluster"), Topic("environment")

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

ASKED = (
    ("create", "", "namespaces"),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("create", "rbac.authorization.k8s.io", "clusterroles"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    ("create", "apps", "deployments"),
    ("create", "apps", "daemonsets"),
    ("create", "", "secrets"),
    ("create", "ray.io", "rayclusters"),
    ("list", "", "nodes"),
)
"""What an update does on a cluster, one of each kind: verb, API group, resource."""

_ASKED_BY_CLAIMS = (
    ("create", "resource.k8s.io", "deviceclasses"),
    ("create", "resource.k8s.io", "resourceclaimtemplates"),
)
"""The same where pods claim NICs or GPUs."""


def check_existing(settings: EnvironmentSettings, existing: ExistingCluster) -> list[Finding]:
    """The kubeconfig can be read, the API server answers, lets an update do its work, and has the declared pools."""
    path = Path(existing.kubeconfig).expanduser()
    path = path if path.is_absolute() else stack_file.project() / path
    try:
        text = _in_context(path.read_text(encoding="utf-8"), existing.context)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return [
            CLUSTER.missing(
                f"the kubeconfig {existing.kubeconfig} cannot be read: {reason}",
                f"KUBECONFIG={existing.kubeconfig} gcloud container clusters get-credentials CLUSTER --location=LOCATION"
                " --project=PROJECT",
            )
        ]
    except ValueError as error:
        return [CLUSTER.missing(str(error), f"KUBECONFIG={existing.kubeconfig} kubectl config get-contexts")]
    try:
        api = ClusterApi(text)
        return [
            _version(api, settings),
            _rights(api, (*ASKED, *_ASKED_BY_CLAIMS) if claiming(settings) else ASKED),
            *_pools(api, {name: pool.nodes_at_least for name, pool in settings.pools.items()}),
        ]
    except ClusterError as error:
        return [CLUSTER.missing(str(error), f"KUBECONFIG={existing.kubeconfig} kubectl get --raw=/readyz")]


def _in_context(text: str, context: str | None) -> str:
    """The kubeconfig with another current context.

    Raises:
        ValueError: it is no kubeconfig, or has no such context.
    """
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"the kubeconfig is no YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(config, dict) or not config.get("clusters"):
        raise ValueError("the file is no kubeconfig: it names no clusters")
    if context is None:
        return text
    known = [str(each.get("name")) for each in config.get("contexts") or []]
    if context not in known:
        raise ValueError(f"the kubeconfig has no context {context!r}; it has {', '.join(known) or 'none'}")
    return json.dumps(config | {"current-context": context})


def _version(api: ClusterApi, settings: EnvironmentSettings) -> Finding:
    answer = api.text("/version")
    try:
        version = str(json.loads(answer)["gitVersion"]).removeprefix("v")
    except (ValueError, KeyError, TypeError):
        return CLUSTER.unchecked("the API server answers, but does not tell its version")
    try:
        problem = too_old(settings, version)
    except ValueError:
        return CLUSTER.fine(f"the API server answers: Kubernetes {version}, which is no version of GKE")
    return CLUSTER.missing(problem) if problem else CLUSTER.fine(f"the API server answers: Kubernetes {version}")


def _rights(api: ClusterApi, asked: Iterable[tuple[str, str, str]]) -> Finding:
    lacking = []
    for verb, group, resource in asked:
        attributes = {"verb": verb, "group": group, "resource": resource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        if not (api.create(_REVIEWS, review).get("status") or {}).get("allowed"):
            lacking.append(f"{verb} {resource}")
    if lacking:
        return CLUSTER.missing(
            f"in the cluster you may not {', '.join(lacking)}",
            "kubectl create clusterrolebinding berth --clusterrole=cluster-admin --user=YOU   # by who administers it",
        )
    return CLUSTER.fine("you may do in the cluster what an update does")


def _pools(api: ClusterApi, least: dict[str, int]) -> list[Finding]:
    """Nodes of each declared pool, of which there are to be at least so many."""
    nodes, _ = api.list(NODES)
    of_pool: dict[str, list[bool]] = {name: [] for name in least}
    others = set()
    for node in nodes:
        name = node["metadata"]["labels"].get(POOL_LABEL)
        if name in of_pool:
            of_pool[name].append(is_ready(node))
        elif name:
            others.add(name)
    findings = []
    for name, ready in of_pool.items():
        if not ready and least[name]:
            has = f"; its pools are {', '.join(sorted(others))}" if others else ""
            findings.append(
                CLUSTER.missing(
                    f"no node has the label {POOL_LABEL}={name}{has}", f"kubectl get nodes --label-columns={POOL_LABEL}"
                )
            )
        elif not all(ready):
            findings.append(
                CLUSTER.missing(
                    f"pool {name}: {ready.count(False)} of {len(ready)} nodes are not ready",
                    f"kubectl get nodes --selector={POOL_LABEL}={name}",
                )
            )
        else:
            findings.append(
                CLUSTER.fine(f"pool {name}: {len(ready)} nodes, all ready" if ready else f"pool {name}: no nodes now")
            )
    return findings


def check_environment(stack: str) -> list[Finding]:
    """The environment that an engineer's stack names: it is up, and its API server answers."""
    try:
        up = brought_up(stack)
    except StatusError as error:
        text, _, mend = str(error).partition("; run: ")
        return [ENVIRONMENT.missing(text, mend)]
    there = ENVIRONMENT.fine(f"environment {up.stack} is up")
    least = {name: pool.nodes_at_least for name, pool in up.contract.pools.items()}
    try:
        return [there, *_pools(ClusterApi(up.kubeconfig), least)]
    except ClusterError as error:
        return [there, CLUSTER.missing(str(error), f"berth status -s {up.stack}")]
