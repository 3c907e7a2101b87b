"""The end of a program: `pulumi up` returns when the stack's RayClusters are ready, or says which is not and why."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pulumi

from components.berth import STACK_LABEL, Berth
from stacks.settings.types import parse_duration


class NotReadyError(Exception):
    """RayClusters are not ready in time. Each has been reported as an error of its own resource."""


async def wait_until_ready(stack: str, kubeconfig: pulumi.Output[str], berths: Sequence[Berth]) -> None:
    """Wait for those that are to be waited for; in a preview for none.

    Raises:
        NotReadyError: not all are ready in time.
    """
    waited = {(berth.namespace, berth.settings.name): berth for berth in berths if berth.settings.wait_until == "ready"}
    if pulumi.runtime.is_dry_run() or not waited:
        return
    # Not before Pulumi has made them: until then there is nothing to look at.
    await asyncio.gather(*(berth.ray_cluster.id.future() for berth in waited.values()))
    loop = asyncio.get_running_loop()

    def report(key: tuple[str, str], text: str) -> None:
        loop.call_soon_threadsafe(_say, text, waited[key])

    # Imported here: the kubernetes client is only needed by a wait, and a preview doesn't wait.
    from components.cluster_api import ClusterError  # noqa: PLC0415
    from components.ray.readiness import Wait  # noqa: PLC0415

    wait = Wait(
        kubeconfig=str(await kubeconfig.future()),
        selector=f"{STACK_LABEL}={stack}",
        deadlines={key: parse_duration(berth.settings.wait_timeout) for key, berth in waited.items()},
        report=report,
    )
    try:
        failed = await asyncio.to_thread(wait.run)
    except ClusterError as error:
        raise pulumi.RunError(f"cannot tell whether the RayClusters are ready: {error}") from None
    finally:
        wait.stop.set()
    for key, reasons in failed.items():
        berth = waited[key]
        text = f"RayCluster {'/'.join(key)} is not ready after {berth.settings.wait_timeout}: {'; '.join(reasons)}"
        pulumi.log.error(text, berth.ray_cluster)
    if failed:
        raise NotReadyError


def _say(text: str, berth: Berth) -> None:
    pulumi.log.info(text, berth.ray_cluster, ephemeral=True)
