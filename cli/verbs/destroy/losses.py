"""Berths that a destruction takes, and what runs on them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from berth.cli.reach.berths import Berth, names_of
from berth.cli.reach.current_work import Running, running_on
from berth.cli.reach.environment import NotUpError, brought_up
from berth.cli.reach.kubectl import kubectl
from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, Object
from berth.components.cluster.owned import owners_of
from berth.components.core.errors import BerthError
from berth.components.core.words import counted
from berth.components.ray.condition import condition_of

_AT_ONCE = 16
"""Berths that are asked at the same time what runs on them."""


@dataclass(frozen=True)
class Loss:
    """A berth that is lost.

    Attributes:
        name: the engineer's id or the cluster's name.
        namespace: its namespace.
        stack: stack that created it.
        state: KubeRay's state.
        running: work that runs on it.
    """

    name: str
    namespace: str
    stack: str
    state: str
    running: Running

    @property
    def empty(self) -> bool:
        """Whether it has no pods, so that nobody notices the loss."""
        return not self.running.pods

    def __str__(self) -> str:
        what = [
            f"{self.state}, {counted(self.running.pods, 'pod')}, of stack {self.stack}",
            *self.running.work,
        ]
        if self.running.unknown:
            what.append(f"cannot tell what runs on it: {self.running.unknown}")
        if self.running.note:
            what.append(self.running.note)
        return f"{self.name}: {'; '.join(what)}"

    def as_json(self) -> dict[str, Any]:
        """Return the loss for programs."""
        return {
            "name": self.name,
            "namespace": self.namespace,
            "stack": self.stack,
            "state": self.state,
            "pods": self.running.pods,
            "jobs": self.running.work,
            "unknown": self.running.unknown,
        }


def losses_of(stack: str, outputs: Mapping[str, Any], *, of_environment: bool) -> list[Loss]:
    """Return the berths that are lost with a stack; with an environment's all on its cluster.

    Args:
        stack: the stack.
        outputs: its outputs.
        of_environment: the stack is an environment's.

    Raises:
        BerthError: the cluster cannot be asked.
    """
    try:
        environment = brought_up(stack, outputs)
    except NotUpError:
        return []
    api = ClusterApi(environment.kubeconfig)
    there = owners_of(api).of_environment(environment.contract.name)
    owners = there if of_environment else there.of_stack(stack)

    def loss(cluster: Object) -> Loss:
        name = next(iter(names_of([cluster])), cluster["metadata"]["name"])
        berth = Berth(name, environment, api, cluster)
        return Loss(name, berth.namespace, berth.stack, condition_of(cluster).state, _running(berth))

    # Each head answers in the time that a Python takes to start there.
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="loss") as threads:
        losses = threads.map(loss, owners.owned(api.list(RAY_CLUSTERS)[0]))
        return sorted(losses, key=lambda loss: loss.name)


def _running(berth: Berth) -> Running:
    try:
        with kubectl(berth.environment.kubeconfig) as program:
            return running_on(berth, program)
    except BerthError as error:
        return Running(pods=len(berth.pods()), unknown=str(error))
