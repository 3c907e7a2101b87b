"""Adoption of RayClusters by an upgraded KubeRay operator, before a berth is edited.

KubeRay 1.6 notes the spec as it is on a head that another version of KubeRay has made, and
recreates no pod (kuberay v1.6.2, shouldRecreatePodsForUpgrade in
ray-operator/controllers/ray/raycluster_controller.go). It would note an edit before that as done.
"""

import asyncio
import time
from collections.abc import Collection

import pulumi

from berth.components.cluster.api import PODS, ClusterApi, ClusterError
from berth.components.cluster.object_fields import ObjectKey, key_of
from berth.components.core.words import counted, first_names
from berth.stacks.load.stack import Environment

_MADE_BY = "ray.io/kuberay-version"
_HEADS = "ray.io/node-type=head"

_LONGEST_SECONDS = 120.0
"""Time for the operator to start and to look at every RayCluster, one after the other."""
_PAUSE_SECONDS = 1.0


async def wait_for_adoption(
    loaded: Environment, kubeconfig: pulumi.Output[str], operators: pulumi.CustomResource
) -> None:
    """Wait until no berth's head is another version's; with an operator of berth's own only."""
    kuberay = loaded.settings.operators.kuberay
    mains = [inputs.manifests.main for inputs in loaded.berths if inputs.part != "isolation"]
    clusters = {key_of(main) for main in mains if main["kind"] == "RayCluster"}
    if pulumi.runtime.is_dry_run() or kuberay.source != "chart" or not clusters:
        return
    version = kuberay.version
    await operators.id.future()
    api = ClusterApi(str(await kubeconfig.future()))
    deadline = time.monotonic() + _LONGEST_SECONDS
    shown = 0
    while left := await asyncio.to_thread(_not_adopted, api, version, clusters):
        text = (
            f"KubeRay {version} has not yet taken over {counted(len(left), 'RayCluster')} of the"
            " version before"
        )
        if time.monotonic() > deadline:
            pulumi.log.warn(
                f"{text}: {first_names(left)}; an edit of these may have no effect",
                operators,
            )
            return
        if len(left) != shown:
            pulumi.log.info(text, operators, ephemeral=True)
            shown = len(left)
        await asyncio.sleep(_PAUSE_SECONDS)


def _not_adopted(api: ClusterApi, version: str, clusters: Collection[ObjectKey]) -> list[str]:
    try:
        heads = api.metadata(PODS, labelSelector=_HEADS)
    except ClusterError:
        return []  # the wait for the RayClusters has the words for it
    names = []
    for head in heads:
        metadata = head["metadata"]
        name = str((metadata.get("labels") or {}).get("ray.io/cluster"))
        made_by = (metadata.get("annotations") or {}).get(_MADE_BY, "")
        if made_by not in ("", f"v{version}") and (metadata["namespace"], name) in clusters:
            names.append(name)
    return names
