"""Lookup of a berth by an engineer's id or a cluster's name, by a stack, or by both."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from berth.cli.reach.berth_names import names_in, own_name
from berth.cli.reach.environment import LiveEnvironment, NotUpError, brought_up
from berth.cli.reach.named_berth import berth_and_stack
from berth.components.cluster.api import (
    NAMESPACES,
    NODES,
    PODS,
    RAY_CLUSTERS,
    ClusterApi,
    ClusterError,
    Object,
    RefusedError,
    in_namespace,
)
from berth.components.cluster.nodes import is_simulated
from berth.components.cluster.object_fields import ObjectKey
from berth.components.cluster.owned import owner_of_namespace, owners_of, ray_clusters_of
from berth.components.cluster.ray_manifest import is_suspended
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import ENVIRONMENT_LABEL, OWNER_LABELS, STACK_LABEL, namespace_of
from berth.stacks.files import stack_file


@dataclass(frozen=True)
class LiveBerth:
    """A berth, or a named cluster, that is up."""

    name: str
    """The engineer's id or the cluster's name."""
    environment: LiveEnvironment
    api: ClusterApi
    cluster: Object

    @property
    def namespace(self) -> str:
        """Namespace of the RayCluster."""
        return str(self.cluster["metadata"]["namespace"])

    @property
    def key(self) -> ObjectKey:
        """Namespace and name of the RayCluster."""
        return self.namespace, str(self.cluster["metadata"]["name"])

    @property
    def stack(self) -> str:
        """Stack that created the RayCluster."""
        return str(self.cluster["metadata"]["labels"][STACK_LABEL])

    def suspension_note(self, cluster: Object | None = None) -> str:
        """Return a note on how to wake a suspended berth; "" for one that is awake."""
        if not is_suspended(cluster or self.cluster):
            return ""
        return f"{self.name} is suspended; bring it back with: berth wake {self.name}"

    def pods(self, kind: str = "") -> list[Object]:
        """Return its pods that are not being deleted, sorted by name: `head`, `worker`, or all."""
        selector = f"ray.io/cluster={self.key[1]}"
        if kind:
            selector += f",ray.io/node-type={kind}"
        pods, _ = self.api.list(in_namespace(self.namespace, PODS), labelSelector=selector)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return sorted(alive, key=lambda pod: str(pod["metadata"]["name"]))

    @cached_property
    def simulated_nodes(self) -> frozenset[str]:
        """Nodes that run no containers; none without the right to list nodes."""
        try:
            nodes, _ = self.api.list(NODES)
        except ClusterError:
            return frozenset()
        return frozenset(str(node["metadata"]["name"]) for node in nodes if is_simulated(node))

    def is_simulated(self, pod: Object) -> bool:
        """Return whether a pod's containers never run."""
        return pod["spec"].get("nodeName") in self.simulated_nodes


def live_berth(name: str | None, stack: str | None) -> LiveBerth:
    """Return a berth that is up.

    Args:
        name: engineer's id or cluster's name; None for the berth of an engineer's own stack.
        stack: stack of the environment, or the engineer's own; None for the one that has the name.

    Raises:
        NotUpError: the berth or its environment is in the settings and not up.
        BadInputError: the arguments name no berth, or the environment has none by that name.
    """
    name, stack = berth_and_stack(name, stack)
    environment = brought_up(stack)
    api = ClusterApi(environment.kubeconfig)
    if cluster := _ray_cluster(api, environment.contract.name, name):
        return LiveBerth(name, environment, api, cluster)
    for owner, settings in stack_file.all_settings().items():
        if own_name(owner, settings) == name:
            in_settings = settings["engineer"].get("environment") == environment.stack
        else:
            in_settings = owner == environment.stack and name in names_in(settings)
        if in_settings:
            raise NotUpError.of_berth(name, owner, environment.stack)
    names: list[str] = []
    with contextlib.suppress(ClusterError):
        owners = owners_of(api).of_environment(environment.contract.name)
        names = sorted(owner.name for owner in owners.by_namespace.values())
    raise BadInputError(
        f"environment {environment.stack} has no berth or cluster"
        f" {name!r}{did_you_mean(name, names)}; berth status -s {environment.stack} lists them"
    )


def _ray_cluster(api: ClusterApi, environment: str, name: str) -> Object | None:
    """Return the RayCluster of a berth on an environment, by the namespace of the berth.

    Users of a berth may not read the namespace. To them, the RayCluster's own labels answer, which
    they may change to deceive only themselves.
    """
    try:
        namespace = api.get(f"{NAMESPACES}/{namespace_of(name)}")
    except RefusedError:
        selector = f"{ENVIRONMENT_LABEL}={environment}"
        found, _ = api.list(in_namespace(namespace_of(name), RAY_CLUSTERS), labelSelector=selector)
        return next((cluster for cluster in found if name in names_of([cluster])), None)
    owner = owner_of_namespace(namespace) if namespace else None
    if owner is None or owner.environment != environment:
        return None
    return next(iter(ray_clusters_of(api, owner)), None)


def names_of(objects: Iterable[Object]) -> list[str]:
    """Return the owners of RayClusters or pods: engineers' ids and clusters' names."""
    names: set[str] = set()
    for item in objects:
        labels = item["metadata"].get("labels") or {}
        names.update(str(labels[key]) for key in OWNER_LABELS.values() if key in labels)
    return sorted(names)
