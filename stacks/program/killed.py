"""Warning of an update that finds an earlier one killed before its state was written."""

from __future__ import annotations

import asyncio
import os

import pulumi

from berth.components.cluster.api import ClusterApi, ClusterError
from berth.components.cluster.unrecorded import is_marked, unrecorded_warning


async def warn_of_killed_update(stack: str, kubeconfig: pulumi.Output[str]) -> None:
    """Warn if an update of `berth up` was killed; in a preview and in such an update do nothing."""
    if pulumi.runtime.is_dry_run() or os.environ.get("PULUMI_SKIP_CHECKPOINTS"):
        return
    text = await kubeconfig.future()
    if not text:
        return
    try:
        killed = await asyncio.to_thread(is_marked, ClusterApi(text), stack)
        if killed:
            pulumi.log.warn(unrecorded_warning(stack))
    except ClusterError:
        pass  # the wait for RayClusters reports a cluster that does not answer
