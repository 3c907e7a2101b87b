"""Version of resource.k8s.io for an environment's claims: the newest that its cluster serves."""

import asyncio

import pulumi

from berth.components.cluster.api import ClusterApi, ClusterError
from berth.components.cluster.inventory import NEEDED, served_version
from berth.components.hardware.names import ResourceApi
from berth.stacks.settings.environment import EnvironmentSettings

ASSUMED: ResourceApi = "v1"
"""Version that Kubernetes 1.34 and newer serve by default."""


async def claims_api(settings: EnvironmentSettings, kubeconfig: pulumi.Output[str]) -> ResourceApi:
    """Return the version of resource.k8s.io for claims; ask only where a pool needs some.

    A preview continues without an answer: there is no cluster yet, or it cannot be reached.
    """
    pools = [name for name, pool in settings.pools.items() if pool.rdma != "none" or pool.by_dra]
    text = await kubeconfig.future() if pools else None
    if text is None:  # nothing is claimed, or the cluster does not exist yet
        return ASSUMED
    try:
        version = await asyncio.to_thread(lambda: served_version(ClusterApi(text)))
    except ClusterError as error:
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(
                f"cannot tell which version of resource.k8s.io the cluster serves: {error}; the"
                f" preview assumes {ASSUMED}"
            )
            return ASSUMED
        raise pulumi.RunError(
            f"cannot tell which version of resource.k8s.io the cluster serves: {error}; run the"
            " update again"
        ) from None
    if version is None:
        named = ", ".join(map(repr, pools))
        kinds = ",".join(f"resource.k8s.io/v1beta1/{kind}" for kind in sorted(NEEDED))
        raise pulumi.RunError(
            "the cluster serves no version of resource.k8s.io, so nothing could claim the NICs or"
            f" GPUs of {'pool' if len(pools) == 1 else 'pools'} {named}, and no worker would start"
            " there; upgrade it to Kubernetes 1.34 or newer, or, from 1.32 on, switch the beta API"
            f" on (gcloud container clusters update NAME --enable-kubernetes-unstable-apis={kinds})"
        )
    return version
