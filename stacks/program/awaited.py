"""Resources that an update waits for, and the waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from berth.components.berth import BerthInputs, berth_manifests
from berth.components.cluster.api import unreachable
from berth.components.core.owner import STACK_LABEL
from berth.components.core.types import parse_duration
from berth.components.ray import readiness
from berth.components.ray.evidence import Key
from berth.components.ray.reasons import GONE, SIMULATED
from berth.components.ray.settings import Wait as Goal
from berth.components.ray.workload_settings import JobWait

Kind = Literal["RayCluster", "RayService", "RayJob"]
Until = Literal["ready", "running", "succeeded"]

_MISSED: dict[Until, str] = {
    "ready": "is not ready after {}",
    "running": "does not run (waited for {} at most)",
    "succeeded": "has not succeeded (waited for {} at most)",
}


@dataclass(frozen=True)
class Awaited:
    """Resource that an update waits for, until a state, for a time as people write it: `10m`.

    Attributes:
        kind: its kind.
        until: the state.
        key: its namespace and name.
        timeout: the longest time.
    """

    kind: Kind
    until: Until
    key: Key
    timeout: str

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(self.key)}"

    def problem(self, reasons: Sequence[str]) -> str:
        """Return the error text: the resource is not ready, with the reasons."""
        missed = "does not exist" if GONE in reasons else _MISSED[self.until].format(self.timeout)
        return f"{self} {missed}: {'; '.join(reasons)}"

    def put_off(self, stack: str, going: Sequence[str]) -> str:
        """Return the warning that the update does not wait.

        Args:
            stack: the stack.
            going: namespaces whose end makes room; empty if the pods are on simulated nodes.
        """
        if not going:
            return f"{self} is not waited for: {SIMULATED}"
        return (
            f"{self} is not waited for: its pods find no node while those of {', '.join(going)} are there, which go"
            f" at the end of this update; `berth status -s {stack}` says when it is ready"
        )


def awaited_of(inputs: BerthInputs) -> list[Awaited]:
    """Return the resources of a berth that an update waits for."""
    if inputs.part == "isolation":
        return []
    manifests = inputs.manifests or berth_manifests(inputs)
    goals: list[tuple[Kind, Goal | JobWait, str]] = [
        (inputs.workload.main_kind, inputs.workload.wait, manifests.main["metadata"]["name"]),
        *(("RayJob", job.wait, manifests.jobs[job.name]["metadata"]["name"]) for job in inputs.jobs),
    ]
    namespace = manifests.namespace["metadata"]["name"]
    return [
        Awaited(kind, wait.until, (namespace, name), wait.timeout)
        for kind, wait, name in goals
        if wait.until != "submitted"
    ]


@dataclass
class Waits:
    """Waits for resources of some berths of one stack.

    Attributes:
        stack: the stack.
        kubeconfig: kubeconfig of the cluster, as text.
        awaited: the resources.
        namespaces: namespaces that stay after the update.
        report: called with a resource and its state after each change.
        put_off: called with a resource that waits for pods in namespaces to be deleted.
        stop: event that ends all waits early.
    """

    stack: str
    kubeconfig: str
    awaited: Iterable[Awaited]
    namespaces: Collection[str]
    report: Callable[[Awaited, str], None]
    put_off: Callable[[Awaited, Sequence[str]], None]
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> list[tuple[Awaited, list[str]]]:
        """Wait for all resources at once; return those that are not ready in time, with reasons.

        Raises:
            ClusterError: the API server does not answer at all, or not until the last deadline.
        """
        groups: dict[tuple[Kind, Until], dict[Key, Awaited]] = {}
        for resource in self.awaited:
            groups.setdefault((resource.kind, resource.until), {})[resource.key] = resource
        if not groups:
            return []
        # A wait goes on while a server is away, such as for its upgrade, but not begin without it.
        if error := unreachable(self.kubeconfig):
            raise error.of_stack(self.stack)
        with ThreadPoolExecutor(len(groups), thread_name_prefix="wait") as threads:
            try:
                found = [(group, threads.submit(self._wait(group).run)) for group in groups.values()]
                return [(group[key], why) for group, wait in found for key, why in wait.result().items()]
            finally:
                self.stop.set()

    def _wait(self, awaited: Mapping[Key, Awaited]) -> readiness.Wait:
        """Return the wait for resources of one kind."""
        kinds: dict[tuple[Kind, Until], readiness.Kind] = {
            ("RayCluster", "ready"): readiness.RAY_CLUSTER,
            ("RayService", "ready"): readiness.RAY_SERVICE,
            ("RayJob", "running"): readiness.RUNNING_JOB,
            ("RayJob", "succeeded"): readiness.SUCCEEDED_JOB,
        }
        first = next(iter(awaited.values()))
        where = {namespace for namespace, _ in awaited}
        return readiness.Wait(
            kind=kinds[first.kind, first.until],
            kubeconfig=self.kubeconfig,
            selector=f"{STACK_LABEL}={self.stack}",
            deadlines={key: parse_duration(resource.timeout) for key, resource in awaited.items()},
            report=lambda key, text: self.report(awaited[key], text),
            namespaces=self.namespaces,
            put_off=lambda key, going: self.put_off(awaited[key], going),
            # An engineer may list the objects of their own namespace only.
            namespace=where.pop() if len(where) == 1 else "",
            stop=self.stop,
        )
