"""View of an environment's cluster: what a preview compares with beside the engine's plan."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from berth.cli.pulumi import stack as pulumi_stack
from berth.components.cluster.api import (
    PODS,
    RAY_CLUSTERS,
    ClusterApi,
    ClusterError,
    Object,
    RefusedError,
    UnreachableError,
)
from berth.components.cluster.kubeconfig import own_login
from berth.components.cluster.object_fields import ObjectKey, key_of, labels_of
from berth.components.cluster.owned import owners_of
from berth.components.cluster.ray_manifest import as_it_runs
from berth.components.cluster.rights import has_right
from berth.components.core.errors import BerthError
from berth.components.gke import ExistingCluster

_NODE_TYPE = "ray.io/node-type"

_SECRETS = ("list", "", "secrets")
"""The right to read Helm's records of releases, which are Secrets."""


@dataclass(frozen=True)
class ClusterView:
    """Outputs of a stack, and the RayClusters of its cluster.

    Attributes:
        outputs: outputs of the stack's last update, secret ones in clear text.
        api: the cluster; None if the outputs name none, or it does not answer.
        live: RayClusters as they run, with the owners of their namespaces; None if the cluster was
            not asked.
        not_asked: why the cluster was not asked; empty if there is none to ask.
        state_only: why the engine cannot ask the cluster either; empty if it can, or has none.
        reads_releases: whether this identity may read Helm's records of releases.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    api: ClusterApi | None = None
    live: Sequence[Mapping[str, Any]] | None = None
    not_asked: str = ""
    state_only: str = ""
    reads_releases: bool = True


def cluster_view(stack: str, *, asks_for_releases: bool = False) -> ClusterView:
    """Return the view of a stack's cluster; a failure stands in `not_asked`.

    A cluster that does not answer takes the Kubernetes client's bound, 10 s.

    Args:
        stack: name of an environment's stack.
        asks_for_releases: whether the view says if Helm's records of releases can be read.
    """
    view = ClusterView()
    try:
        view = replace(view, outputs=pulumi_stack.stack_outputs(stack))
        api = _cluster_of(view.outputs)
        if api is None:
            return view
        view = replace(view, api=api)
        if asks_for_releases:
            view = replace(view, reads_releases=has_right(api, _SECRETS))
        return replace(view, live=owners_of(api).labeled(_running(api)))
    except UnreachableError as error:
        not_asked = str(error.of_stack(stack))
        return replace(view, not_asked=not_asked, state_only=_why_not(error))
    except ClusterError as error:
        return replace(view, not_asked=str(error), state_only=_why_not(error))
    except BerthError as error:
        return replace(view, not_asked=str(error))


def _running(api: ClusterApi) -> list[Object]:
    """Return the RayClusters of a cluster, with as many workers as run.

    Who may not list pods gets the numbers that the RayClusters should have.
    """
    clusters, _ = api.list(RAY_CLUSTERS)
    try:
        pods = api.metadata(PODS, labelSelector="ray.io/cluster,ray.io/group")
    except RefusedError:
        return clusters
    workers: dict[ObjectKey, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        metadata = pod["metadata"]
        if "deletionTimestamp" not in metadata and labels_of(pod).get(_NODE_TYPE) == "worker":
            cluster = (metadata["namespace"], labels_of(pod)["ray.io/cluster"])
            workers[cluster][labels_of(pod)["ray.io/group"]] += 1
    return [as_it_runs(cluster, workers[key_of(cluster)]) for cluster in clusters]


def _why_not(error: ClusterError) -> str:
    """Return why the engine cannot ask a cluster; "" for a cluster that answers."""
    if isinstance(error, UnreachableError):
        return f"the cluster does not answer at {error.server} ({error.cause})"
    if not isinstance(error, RefusedError):
        return error.problem  # of the kubeconfig
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"the cluster does not know your login ({error.message})"
    return ""


def _cluster_of(outputs: Mapping[str, Any]) -> ClusterApi | None:
    kubeconfig = outputs.get("kubeconfig")
    if not kubeconfig:
        return None
    contract = outputs.get("environment")
    named = contract.get("login") if isinstance(contract, Mapping) else None
    login = ExistingCluster.model_validate(named).login if named else None
    text, _ = own_login(str(kubeconfig), login)
    return ClusterApi(text)
