"""The end of a program: `pulumi up` returns when what the stack runs is as it should be, or says what is not and why."""

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

if TYPE_CHECKING:
    from berth.components.ray.readiness import Key, Wait

What = Literal["RayCluster", "RayService", "running RayJob", "ended RayJob"]


class NotReadyError(BerthError):
    """Resources that are not ready in time; each is reported as an error of its own already."""

    def __init__(self) -> None:
        super().__init__("not everything is ready in time")


@dataclass(frozen=True)
class Waited:
    """What is waited for.

    Attributes:
        what: its kind, and until when.
        resource: what was registered of it.
        timeout: for how long, for people: `10m`.
    """

    what: What
    resource: KubernetesObject
    timeout: str

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        metadata = self.resource.manifest["metadata"]
        return metadata["namespace"], metadata["name"]

    def __str__(self) -> str:
        """Its kind, namespace and name."""
        return f"{self.what.rpartition(' ')[2]} {'/'.join(self.key)}"

    def problem(self, reasons: Sequence[str]) -> str:
        """That it is not as it should be, and why."""
        why = "; ".join(reasons)
        if self.what in ("RayCluster", "RayService"):
            return f"{self} is not ready after {self.timeout}: {why}"
        missed = "does not run" if self.what == "running RayJob" else "has not succeeded"
        return f"{self} {missed} (waited for {self.timeout} at most): {why}"

    def put_off(self, stack: str, going: Sequence[str]) -> str:
        """That it is not waited for, since there is room for it only once the update has deleted something."""
        return (
            f"{self} is not waited for: its pods find no node while those of {', '.join(going)} are there, which go at the end of "
            f"this update; `berth status -s {stack}` says when it is ready"
        )


async def wait_until_ready(stack: str, kubeconfig: pulumi.Output[str], berths: Sequence[Berth]) -> None:
    """Wait for those that are to be waited for; in a preview for none.

    Raises:
        NotReadyError: not all are as they should be in time.
    """
    waited = [each for berth in berths for each in waited_of(berth)]
    if pulumi.runtime.is_dry_run() or not waited:
        return
    # Not before Pulumi has made them: until then there is nothing to look at.
    await asyncio.gather(*(each.resource.id.future() for each in waited))
    text = str(await kubeconfig.future())
    kinds = dict.fromkeys(each.what for each in waited)
    by_kind = [{each.key: each for each in waited if each.what == kind} for kind in kinds]
    # All of them wait at once, each with a watch of its own.
    namespaces = {berth.namespace for berth in berths}
    failed = [problem for found in await _all(stack, text, by_kind, namespaces) for problem in found]
    for each, reasons in failed:
        pulumi.log.error(each.problem(reasons), each.resource)
    if failed:
        raise NotReadyError


def waited_of(berth: Berth) -> list[Waited]:
    """What is waited for of a berth, a named cluster, a job or a service."""
    settings = berth.settings
    found = [
        Waited(
            "running RayJob" if job.settings.wait_until == "running" else "ended RayJob",
            job.resource,
            job.settings.wait_timeout,
        )
        for job in berth.jobs
        if job.settings.wait_until != "submitted"
    ]
    if berth.kind != "job" and settings.wait_until == "ready":
        what: What = "RayService" if berth.kind == "service" else "RayCluster"
        found.append(Waited(what, berth.ray, settings.wait_timeout))
    return found


async def _all(
    stack: str, kubeconfig: str, by_kind: Sequence[Mapping[Key, Waited]], namespaces: Collection[str]
) -> list[list[tuple[Waited, list[str]]]]:
    # Imported here: the kubernetes client is only needed by a wait, and a preview doesn't wait.
    from berth.components.cluster.api import ClusterError  # noqa: PLC0415

    waits = [_wait(stack, kubeconfig, waited, namespaces) for waited in by_kind]
    try:
        found = await asyncio.gather(*(asyncio.to_thread(wait.run) for wait in waits))
    except ClusterError as error:
        raise pulumi.RunError(f"cannot tell whether all is ready: {error}") from None
    finally:
        for wait in waits:
            wait.stop.set()
    return [
        [(waited[key], reasons) for key, reasons in each.items()] for waited, each in zip(by_kind, found, strict=True)
    ]


def _wait(stack: str, kubeconfig: str, waited: Mapping[Key, Waited], namespaces: Collection[str]) -> Wait:
    from berth.components.ray import readiness  # noqa: PLC0415 - as above

    kinds: dict[What, readiness.Kind] = {
        "RayCluster": readiness.RAY_CLUSTER,
        "RayService": readiness.RAY_SERVICE,
        "running RayJob": readiness.RUNNING_JOB,
        "ended RayJob": readiness.SUCCEEDED_JOB,
    }
    loop = asyncio.get_running_loop()

    def report(key: Key, text: str) -> None:
        loop.call_soon_threadsafe(_say, text, waited[key])

    def put_off(key: Key, going: Sequence[str]) -> None:
        loop.call_soon_threadsafe(_warn, waited[key].put_off(stack, going), waited[key])

    return readiness.Wait(
        kind=kinds[next(iter(waited.values())).what],
        kubeconfig=kubeconfig,
        selector=f"{STACK_LABEL}={stack}",
        deadlines={key: parse_duration(each.timeout) for key, each in waited.items()},
        report=report,
        namespaces=namespaces,
        put_off=put_off,
    )


def _warn(text: str, waited: Waited) -> None:
    pulumi.log.warn(text, waited.resource)


def _say(text: str, waited: Waited) -> None:
    pulumi.log.info(text, waited.resource, ephemeral=True)
