"""What a change of the fabric's drivers does: DraNet, NVIDIA's DRA driver for GPUs, Google's NCCL plugin.

Devices that a pod has stay its own while the driver is away: the kubelet asks a driver when a pod starts and when it ends
(https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/). The plugin's installer writes over the files
that running workers have mapped; Google's release notes ask for a time without workloads
(https://github.com/GoogleCloudPlatform/container-engine-accelerators, gpudirect-rdma).
"""

from __future__ import annotations

from berth.components.hardware.names import CLAIMED_LABEL
from berth.components.operators.gib import NAME as GIB
from berth.components.plan.effect import Effect, Level, sitting_on, where_somebody_works
from berth.components.plan.fleet import PlannedFleet, PlannedPool
from berth.components.plan.paths import below
from berth.components.plan.plan import State, Step

DRANET, GPU_DRA = "dranet", "dra-driver-nvidia-gpu"
"""Names of their charts."""

_CALLED = {DRANET: ("DraNet", "NICs"), GPU_DRA: ("NVIDIA's DRA driver", "GPUs")}


def of_driver(step: Step, fleet: PlannedFleet, chart: str) -> list[Effect]:
    """The effects of a change of a driver's Helm release.

    Args:
        step: the change.
        fleet: who is where.
        chart: the chart's name.
    """
    name, devices = _CALLED[chart]
    sitting = sitting_on(fleet, _pools(fleet, chart))
    if step.operation in ("replace", "delete"):
        again = ", then installed anew" if step.operation == "replace" else ""
        text = (
            f"{name} is removed{again}: running pods keep their {devices}, those that end hang until it is back, and none that claims"
            f" {devices} starts"
        )
        return [Effect(Level.DESTROYS, text, sitting)]
    text = f"{name} restarts on its nodes: running pods keep their {devices}, and none that claims {devices} starts meanwhile"
    return [Effect(Level.DISTURBS, text, sitting)]


def is_gib(step: Step) -> bool:
    """Whether a change is of the NCCL plugin's installer."""
    metadata = (step.old.inputs.get("metadata") if step.old else None) or {}
    return bool(metadata.get("name") == GIB)


def of_gib(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """The effects of a change of the NCCL plugin's installer."""
    if step.operation == "delete":
        text = "gIB stays on the nodes that have it; nodes that come later have none, and NCCL fails there"
        return [Effect(Level.DISTURBS, text)]
    if step.operation == "update" and not any(below(each.path, "spec.template") for each in step.properties):
        return []
    sitting = sitting_on(fleet, [name for name, pool in fleet.before.items() if _has_nics(pool)] or fleet.everywhere)
    text = "gIB is written over on every node with RDMA NICs: jobs that use it may crash, so change it while none runs"
    if step.operation == "update" and _installs_nccl(step.old) and not _installs_nccl(step.new):
        text += "; the NCCL that the installer put there before stays, and shadows the image's (docs/fabric.md)"
    return [Effect(where_somebody_works(fleet, sitting), text, sitting)]


def _installs_nccl(state: State | None) -> bool:
    """Whether an installer of gIB copies an NCCL to nodes too, as berth's did until Google's stopped."""
    pod = (((state.inputs if state else {}).get("spec") or {}).get("template") or {}).get("spec") or {}
    return any(
        "--install-nccl" in word
        for container in pod.get("initContainers") or []
        for word in container.get("args") or []
    )


def _pools(fleet: PlannedFleet, chart: str) -> list[str]:
    """The pools that a driver serves; of a cluster that another made, those on which somebody is."""
    serves = _has_nics if chart == DRANET else _is_claimed
    return [name for name, pool in fleet.before.items() if serves(pool)] if fleet.before else fleet.everywhere


def _has_nics(pool: PlannedPool) -> bool:
    network = pool.settings.get("networkConfig") or {}
    return bool(network.get("additionalNodeNetworkConfigs") or network.get("acceleratorNetworkProfile"))


def _is_claimed(pool: PlannedPool) -> bool:
    return pool.labels.get(CLAIMED_LABEL) == "true"
