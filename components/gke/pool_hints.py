"""Hints for keys of a node pool that are other tools' words: what berth has in their place."""

import re
from collections.abc import Mapping

from berth.components.hardware.machines import GPUS, MACHINES, Gpu

_MACHINE_TYPE = "the machine type says how many GPUs a node has"
_BOUNDS = "write the bounds under `nodes`: nodes: {min: 0, max: 4}"

OTHER_WORDS: Mapping[str, str] = {
    "spot": "write `capacity: spot`",
    "preemptible": "write `capacity: spot`",
    "gpus": _MACHINE_TYPE,
    "gpu": _MACHINE_TYPE,
    "instanceType": "write `machineType`",
    "replicas": "write `nodes`",
    "size": "write `nodes`",
    "count": "write `nodes`",
    "nodeCount": "write `nodes`",
    "numNodes": "write `nodes`",
    "minNodes": _BOUNDS,
    "maxNodes": _BOUNDS,
    "autoscaling": _BOUNDS,
    # Nodes of queued provisioning come only for a ProvisioningRequest, each good for one start of
    # its pods (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest);
    # RayClusters start again and again.
    "queued": (
        "berth makes no ProvisioningRequest, without which nodes of queued provisioning never come;"
        " write `capacity: flex-start` for nodes that come when pods wait"
    ),
    "queuedProvisioning": "write `capacity: flex-start`",
}
"""Hints by key."""

GPU_WORDS = ("accelerator", "accelerators", "gpuType")
"""Other tools' keys whose value names GPUs, such as `h100:8`."""

_MOST_OPTIONS = 3


def machine_type_hint(accelerator: object) -> str:
    """Return what to write for the GPUs of another tool's key: the machine types that have them.

    Args:
        accelerator: value of the key, such as `h100:8`: GPUs, and how many a node has.
    """
    name, _, count = str(accelerator).partition(":")
    product = _plain(name.lower().removeprefix("nvidia").removeprefix("-"))
    if not product:
        return "the machine type says which GPUs a node has, and how many"
    if attached := _attached_gpus(product):
        gpus, machine_type = attached
        return f"write gpus: {{type: {gpus}, count: {count or 1}}} with machineType: {machine_type}"
    machine_types = _machine_types_with(product, count.strip())
    if not machine_types:
        return "the machine type says which GPUs a node has, and how many"
    options = " or ".join(f"`machineType: {name}`" for name in machine_types[:_MOST_OPTIONS])
    return f"the machine type says which GPUs a node has; write {options}"


def _attached_gpus(product: str) -> tuple[str, str] | None:
    """Return GPUs of a name that Google attaches, and the first machine type that takes them."""
    for machine in MACHINES.values():
        for accelerator in machine.series.attaches:
            if _is_called(GPUS[accelerator], product):
                return accelerator, machine.name
    return None


def _machine_types_with(product: str, count: str) -> list[str]:
    """Return the machine types whose nodes have GPUs of a name; any number without a count."""
    names = []
    for machine in MACHINES.values():
        fits = not count.isdecimal() or machine.gpus == int(count)
        if fits and machine.gpus and _is_called(machine.gpu, product):
            names.append(machine.name)
    return names


def _is_called(gpu: Gpu, text: str) -> bool:
    """Return whether a text without blanks, `h100` or `teslat4`, begins a GPU's name."""
    names = (gpu.product, gpu.accelerator.removeprefix("nvidia-"))
    return any(_plain(name.lower()).startswith(text) for name in names)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name)
