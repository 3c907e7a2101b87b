"""The version of resource.k8s.io in which an environment's claims are made: the newest that its cluster serves."""

from __future__ import annotations

import asyncio

import pulumi

from berth.components.hardware.names import ResourceApi
from berth.stacks.settings.environment import EnvironmentSettings

ASSUMED: ResourceApi = "v1"
"""Served by default from Kubernetes 1.34 on."""


def claiming(settings: EnvironmentSettings) -> list[str]:
    """Names of the pools whose NICs or GPUs pods get by claims."""
    return [name for name, pool in settings.pools.items() if pool.rdma != "none" or pool.by_dra]


async def claims_api(settings: EnvironmentSettings, kubeconfig: pulumi.Output[str]) -> ResourceApi:
    """The version of resource.k8s.io to write classes and claims in; asked only where a pool needs claims.

    A preview goes on without an answer: there is no cluster yet, or it cannot be reached from here.

    Args:
        settings: of the environment.
        kubeconfig: of its cluster.

    Raises:
        RunError: the cluster serves none, or in an update cannot be asked.
    """
    pools = claiming(settings)
    if not pools:
        return ASSUMED
    text = await kubeconfig.future()
    if text is None:  # the cluster is about to be made
        return ASSUMED
    # Imported here: the kubernetes client takes a third of a second, and most environments claim nothing.
    from berth.components.cluster.api import ClusterApi, ClusterError  # noqa: PLC0415
    from berth.components.cluster.resource_api import served  # noqa: PLC0415

    try:
        found = await asyncio.to_thread(lambda: served(ClusterApi(text)))
    except ClusterError as error:
        problem = f"cannot tell which version of resource.k8s.io the cluster serves: {error}"
        if not pulumi.runtime.is_dry_run():
            raise pulumi.RunError(problem) from None
        pulumi.log.warn(f"{problem}; the preview takes it to be {ASSUMED}")
        return ASSUMED
    if found is None:
        named = ", ".join(map(repr, pools))
        raise pulumi.RunError(
            f"the cluster serves no version of resource.k8s.io, so that nothing could claim the NICs or GPUs of"
            f" {'pool' if len(pools) == 1 else 'pools'} {named}, and no worker would start there; upgrade it to Kubernetes 1.34 or"
            " newer, or, from 1.32 on, switch the beta API on (gcloud container clusters update NAME"
            " --enable-kubernetes-unstable-apis=resource.k8s.io/v1beta1/deviceclasses,resource.k8s.io/v1beta1/resourceclaims,"
            "resource.k8s.io/v1beta1/resourceclaimtemplates,resource.k8s.io/v1beta1/resourceslices)"
        )
    return found
