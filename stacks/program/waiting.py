"""End of a program: `pulumi up` returns when everything is ready, or reports what is not."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pulumi

from berth.components.berth import Berth
from berth.components.cluster.api import ClusterError
from berth.components.core.errors import BerthError
from berth.components.ray.live import Awaited, ReadinessWait
from berth.components.sharing import Pools
from berth.stacks.program import NO_WAIT
from berth.stacks.program.awaited import awaited_of


@dataclass(frozen=True)
class Registered:
    """Stack whose resources are registered."""

    outputs: Mapping[str, pulumi.Input[Any]]
    kubeconfig: pulumi.Output[str]
    """Kubeconfig as text, for this process; secret."""
    berths: Sequence[Berth]
    pools: Pools


class NotReadyError(BerthError):
    """Resources that are not ready in time; each is reported as an error of its own already."""


async def wait_until_ready(stack: str, registered: Registered) -> None:
    """Wait for the resources that the settings say; in a preview, or with NO_WAIT, for none.

    Raises:
        NotReadyError: some are not ready in time.
    """
    began = datetime.now(UTC)
    resources = {
        resource: berth.registered[resource.kind, resource.key[1]]
        for berth in registered.berths
        for resource in awaited_of(berth.inputs)
    }
    if os.environ.get(NO_WAIT) or pulumi.runtime.is_dry_run() or not resources:
        return
    # Pulumi registers them first: until then there is nothing to look at. What an update leaves out
    # (`pulumi up --target`, `--exclude`) has no id.
    ids = await asyncio.gather(*(found.id.future() for found in resources.values()))
    awaited = [resource for resource, found in zip(resources, ids, strict=True) if found]
    if not awaited:
        return
    loop = asyncio.get_running_loop()

    def report(resource: Awaited, text: str) -> None:
        loop.call_soon_threadsafe(
            lambda: pulumi.log.info(text, resources[resource], ephemeral=True)
        )

    def give_up(resource: Awaited, warning: str) -> None:
        loop.call_soon_threadsafe(lambda: pulumi.log.warn(warning, resources[resource]))

    namespaces = {berth.namespace for berth in registered.berths}
    wait = ReadinessWait(
        stack,
        str(await registered.kubeconfig.future()),
        awaited,
        namespaces,
        report,
        give_up,
        began,
    )
    try:
        failed = await asyncio.to_thread(wait.run)
    except ClusterError as error:
        raise pulumi.RunError(
            f"cannot tell whether all is ready: {error}; `berth status -s {stack}` asks again"
        ) from None
    finally:
        wait.stop.set()
    for resource, reasons in failed.items():
        pulumi.log.error(resource.problem(reasons), resources[resource])
    if failed:
        raise NotReadyError("not everything is ready in time")
