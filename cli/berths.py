"""Which berth a command means, and where it is: by an engineer's id or a cluster's name, by a stack, or by both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from berth.cli.environment import Environment, NotUpError, brought_up, settings_of
from berth.components.cluster.api import NODES, PODS, RAY_CLUSTERS, ClusterApi, ClusterError, Object, within
from berth.components.cluster.pods import is_simulated
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import ENVIRONMENT_LABEL, OWNER_LABELS, STACK_LABEL, namespace_of
from berth.components.ray.readiness import Key
from berth.components.ray.suspension import is_suspended
from berth.stacks import stack_file


@dataclass(frozen=True)
class Named:
    """A berth as it was asked for.

    Attributes:
        name: the engineer's id or the cluster's name.
        stack: a stack that leads to its environment.
    """

    name: str
    stack: str


@dataclass(frozen=True)
class Berth:
    """A berth, or a named cluster, that is up.

    Attributes:
        name: the engineer's id or the cluster's name.
        environment: what it is on.
        api: its cluster.
        cluster: its RayCluster.
    """

    name: str
    environment: Environment
    api: ClusterApi
    cluster: Object

    @property
    def namespace(self) -> str:
        """Where it is."""
        return str(self.cluster["metadata"]["namespace"])

    @property
    def key(self) -> Key:
        """Namespace and name of its RayCluster."""
        return self.namespace, str(self.cluster["metadata"]["name"])

    @property
    def stack(self) -> str:
        """The stack that made it."""
        return str(self.cluster["metadata"]["labels"][STACK_LABEL])

    def asleep(self, cluster: Object | None = None) -> str:
        """That it is suspended, and what wakes it; "" where it is not.

        Args:
            cluster: its RayCluster as it is by now.
        """
        if not is_suspended(cluster or self.cluster):
            return ""
        return f"{self.name} is suspended; bring it back with: berth wake {self.name}"

    def pods(self, kind: str = "") -> list[Object]:
        """Its pods that are not going away, by name.

        Args:
            kind: `head` or `worker`; all without.

        Raises:
            ClusterError: the API server can't be asked.
        """
        selector = f"ray.io/cluster={self.key[1]}" + (f",ray.io/node-type={kind}" if kind else "")
        found, _ = self.api.list(within(self.namespace, PODS), labelSelector=selector)
        alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(alive, key=lambda pod: str(pod["metadata"]["name"]))

    @cached_property
    def simulated_nodes(self) -> frozenset[str]:
        """Nodes that run no containers; none where nodes may not be looked at."""
        try:
            nodes, _ = self.api.list(NODES)
        except ClusterError:
            return frozenset()
        return frozenset(str(node["metadata"]["name"]) for node in nodes if is_simulated(node))

    def is_simulated(self, pod: Object) -> bool:
        """Whether a pod's containers never run."""
        return pod["spec"].get("nodeName") in self.simulated_nodes


def find(name: str | None, stack: str | None) -> Berth:
    """A berth that is up.

    Raises:
        BadInputError: it can't be told which is meant, or there is no such berth.
        NoSuchStackError: no such stack.
        NotUpError: it, or its environment, is in the settings and not up.
        StatusError: its environment can't be asked.
        ClusterError: the API server can't be asked.
    """
    named = which(name, stack)
    environment = brought_up(named.stack)
    api = ClusterApi(environment.kubeconfig)
    namespace = namespace_of(named.name)
    on_it = f"{ENVIRONMENT_LABEL}={environment.contract.name}"
    found, _ = api.list(within(namespace, RAY_CLUSTERS), labelSelector=on_it)
    for cluster in found:
        if named.name in (cluster["metadata"]["labels"].get(label) for label in OWNER_LABELS.values()):
            return Berth(named.name, environment, api, cluster)
    if makes := _stack_with(named.name, environment.stack):
        raise NotUpError(
            f"{named.name} is in the settings of stack {makes}, but not up on environment {environment.stack};"
            f" run: berth up -s {makes}"
        )
    raise BadInputError(
        f"environment {environment.stack} has no berth or cluster {named.name!r}{_others(api, on_it, named.name)};"
        f" berth status -s {environment.stack} shows those that it has"
    )


def _stack_with(name: str, environment: str) -> str | None:
    """The stack whose settings have a berth or cluster on an environment: an engineer's own, or the environment's."""
    for stack, settings in _stacks().items():
        if stack == environment and name in _names_in(settings):
            return stack
        if _own_name(stack, settings) == name and settings["engineer"].get("environment") == environment:
            return stack
    return None


def _others(api: ClusterApi, on_it: str, name: str) -> str:
    try:
        found, _ = api.list(RAY_CLUSTERS, labelSelector=on_it)
    except ClusterError:
        return ""
    return did_you_mean(name, names_of(found))


def names_of(clusters: Iterable[Object]) -> list[str]:
    """Whose berths some RayClusters are."""
    labels = [cluster["metadata"].get("labels") or {} for cluster in clusters]
    return sorted({str(its[key]) for its in labels for key in OWNER_LABELS.values() if key in its})


def which(name: str | None, stack: str | None) -> Named:
    """The berth that is meant, by the stacks' files alone.

    Args:
        name: the engineer's id or the cluster's name.
        stack: the environment's stack, or the engineer's own.

    Raises:
        BadInputError: neither is given, or it can't be told.
        NoSuchStackError: no such stack.
    """
    if stack is not None:
        settings = settings_of(stack)
        own = _own_name(stack, settings)
        if name is None and own is None:
            known = _names_in(settings)
            choose = f": {', '.join(known)}" if known else ""
            raise BadInputError(f"stack {stack} is an environment; say whose berth on it{choose}")
        return Named(name or str(own), stack)
    if name is None:
        raise BadInputError("say whose berth: NAME, or --stack STACK of an engineer's own stack")
    stacks = _stacks()
    own_stacks = [each for each, settings in stacks.items() if _own_name(each, settings) == name]
    environments = [each for each, settings in stacks.items() if name in _names_in(settings)]
    found = [*own_stacks, *environments]
    if len(found) == 1:
        return Named(name, found[0])
    if found:
        options = " or ".join(f"--stack {each}" for each in found)
        raise BadInputError(f"more than one stack has a berth {name!r}; say which: {options}")
    known = sorted({each for settings in stacks.values() for each in _names_in(settings)} | _own_names(stacks))
    raise BadInputError(
        f"no stack of {stack_file.shown(stack_file.stack_path('NAME').parent)}/ has a berth {name!r}{did_you_mean(name, known)};"
        " for one of a stack that is not there, say on which environment: --stack ENVIRONMENT"
    )


def names(incomplete: str) -> list[str]:
    """For a shell's completion: engineers' ids and clusters' names of all stacks."""
    stacks = _stacks()
    known = {each for settings in stacks.values() for each in _names_in(settings)} | _own_names(stacks)
    return sorted(each for each in known if each.startswith(incomplete))


def _own_names(known: dict[str, dict[str, Any]]) -> set[str]:
    return {own for stack, settings in known.items() if (own := _own_name(stack, settings))}


def _own_name(stack: str, settings: dict[str, Any]) -> str | None:
    """Whose berth an engineer's own stack is."""
    engineer = settings.get("engineer")
    return str(engineer.get("name") or stack) if isinstance(engineer, dict) else None


def _names_in(settings: dict[str, Any]) -> list[str]:
    """The engineers, clusters, jobs and services of an environment's settings."""
    environment = settings.get("environment")
    if not isinstance(environment, dict):
        return []
    parts = [environment.get(kind) for kind in ("engineers", "clusters", "jobs", "services")]
    return [str(name) for part in parts if isinstance(part, dict) for name in part]


def _stacks() -> dict[str, dict[str, Any]]:
    """Return the settings of all stacks whose file is YAML."""
    settings = {}
    for stack in stack_file.stack_names():
        with contextlib.suppress(stack_file.StackFileError):
            settings[stack] = stack_file.read(stack_file.stack_path(stack)).settings
    return settings
