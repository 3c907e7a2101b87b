"""End of a program: `pulumi up` returns when everything is ready, or reports what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pulumi

from berth.components.berth import Berth
from berth.components.cluster.objects import KubernetesObject
from berth.components.core.errors import BerthError
from berth.components.core.owner import STACK_LABEL
from berth.components.core.types import parse_duration
from berth.components.ray.settings import Wait as Goal
from berth.components.ray.workload_settings import JobWait

if TYPE_CHECKING:
    from berth.components.ray.evidence import Key
    from berth.components.ray.readiness import Wait

Kind = Literal["RayCluster", "RayService", "RayJob"]
Until = Literal["ready", "running", "succeeded"]

_MISSED: dict[Until, str] = {
    "ready": "is not ready after {}",
    "running": "does not run (waited for {} at most)",
    "succeeded": "has not succeeded (waited for {} at most)",
}


class NotReadyError(BerthError):
    """Resources that are not ready in time; each is reported as an error of its own already."""

    def __init__(self) -> None:
        super().__init__("not everything is ready in time")


@dataclass(frozen=True)
class Awaited:
    """Resource that an update waits for, until a state, for a time as people write it: `10m`."""

    kind: Kind
    until: Until
    resource: KubernetesObject
    timeout: str

    @property
    def key(self) -> Key:
        """Namespace and name of the resource."""
        metadata = self.resource.manifest["metadata"]
        return metadata["namespace"], metadata["name"]

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(self.key)}"

    def problem(self, reasons: Sequence[str]) -> str:
        """Return the error text: the resource is not ready, with the reasons."""
        return f"{self} {_MISSED[self.until].format(self.timeout)}: {'; '.join(reasons)}"

    def put_off(self, stack: str, going: Sequence[str]) -> str:
        """Return the warning that the update does not wait, since room comes only at its end."""
        return (
            f"{self} is not waited for: its pods find no node while those of {', '.join(going)} are there, which go"
            f" at the end of this update; `berth status -s {stack}` says when it is ready"
        )


async def wait_until_ready(stack: str, kubeconfig: pulumi.Output[str], berths: Sequence[Berth]) -> None:
    """Wait for the resources that the settings say; in a preview for none.

    Raises:
        NotReadyError: some are not ready in time.
        RunError: the cluster cannot be asked.
    """
    awaited = [resource for berth in berths for resource in awaited_of(berth)]
    if pulumi.runtime.is_dry_run() or not awaited:
        return
    # Pulumi registers them first: until then there is nothing to look at. What an update leaves out
    # (`pulumi up --target`, `--exclude`) has no id.
    ids = await asyncio.gather(*(resource.resource.id.future() for resource in awaited))
    awaited = [resource for resource, found in zip(awaited, ids, strict=True) if found]
    if not awaited:
        return
    text = str(await kubeconfig.future())
    groups: dict[tuple[Kind, Until], dict[Key, Awaited]] = {}
    for resource in awaited:
        groups.setdefault((resource.kind, resource.until), {})[resource.key] = resource
    # All of them wait at once.
    namespaces = {berth.namespace for berth in berths}
    waits = [_wait(stack, text, group, namespaces) for group in groups.values()]
    failed = [
        (group[key], reasons)
        for group, found in zip(groups.values(), await _run(waits), strict=True)
        for key, reasons in found.items()
    ]
    for resource, reasons in failed:
        pulumi.log.error(resource.problem(reasons), resource.resource)
    if failed:
        raise NotReadyError


def awaited_of(berth: Berth) -> list[Awaited]:
    """Return the resources of a berth that an update waits for."""
    main = berth.workload
    if berth.main is None:
        return []
    goals: list[tuple[Kind, Goal | JobWait, KubernetesObject]] = [
        (main.main_kind, main.wait, berth.main),
        *(("RayJob", job.wait, resource) for job, resource in berth.jobs),
    ]
    return [
        Awaited(kind, wait.until, resource, wait.timeout) for kind, wait, resource in goals if wait.until != "submitted"
    ]


async def _run(waits: Sequence[Wait]) -> list[dict[Key, list[str]]]:
    # Imported here: the kubernetes client is only needed by a wait, and a preview doesn't wait.
    from berth.components.cluster.api import ClusterError  # noqa: PLC0415

    try:
        return await asyncio.gather(*(asyncio.to_thread(wait.run) for wait in waits))
    except ClusterError as error:
        raise pulumi.RunError(f"cannot tell whether all is ready: {error}") from None
    finally:
        for wait in waits:
            wait.stop.set()


def _wait(stack: str, kubeconfig: str, awaited: Mapping[Key, Awaited], namespaces: Collection[str]) -> Wait:
    """Return the wait for resources of one kind."""
    from berth.components.ray import readiness  # noqa: PLC0415 - as above

    kinds: dict[tuple[Kind, Until], readiness.Kind] = {
        ("RayCluster", "ready"): readiness.RAY_CLUSTER,
        ("RayService", "ready"): readiness.RAY_SERVICE,
        ("RayJob", "running"): readiness.RUNNING_JOB,
        ("RayJob", "succeeded"): readiness.SUCCEEDED_JOB,
    }
    loop = asyncio.get_running_loop()
    first = next(iter(awaited.values()))

    def report(key: Key, text: str) -> None:
        loop.call_soon_threadsafe(lambda: pulumi.log.info(text, awaited[key].resource, ephemeral=True))

    def put_off(key: Key, going: Sequence[str]) -> None:
        loop.call_soon_threadsafe(lambda: pulumi.log.warn(awaited[key].put_off(stack, going), awaited[key].resource))

    where = {namespace for namespace, _ in awaited}
    return readiness.Wait(
        kind=kinds[first.kind, first.until],
        kubeconfig=kubeconfig,
        selector=f"{STACK_LABEL}={stack}",
        deadlines={key: parse_duration(resource.timeout) for key, resource in awaited.items()},
        report=report,
        namespaces=namespaces,
        put_off=put_off,
        # An engineer may list the objects of their own namespace only.
        namespace=where.pop() if len(where) == 1 else "",
    )
