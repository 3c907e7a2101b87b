"""GPUs of a simulated node: facts from its labels, MIG layouts, devices of GKE's own plugin.

GKE's plugin runs on nodes with `cloud.google.com/gke-accelerator`, keeps off those labeled
`gke-no-default-nvidia-gpu-device-plugin=true`, and finds GPUs once GKE has installed a driver,
which it does where `cloud.google.com/gke-gpu-driver-version` is set.
"""

import re
from collections.abc import Mapping

from berth.components.hardware.machines import GPUS, Gpu, mig_slices
from berth.components.hardware.names import (
    ACCELERATOR_LABEL,
    GPU_RESOURCE,
    MIG_LABEL,
    NO_GKE_PLUGIN_LABEL,
)

Labels = Mapping[str, str]
Instances = dict[str, int]
"""MIG instances of one GPU, by profile."""

DRIVER = "cloud.google.com/gke-gpu-driver-version"
SYSTEM = "cloud.google.com/gke-os-distribution"
MIG_STATE = "nvidia.com/mig.config.state"
SUCCESS = "success"
FAILED = "failed"
DISABLED = "all-disabled"

_COUNT = "cloud.google.com/gke-accelerator-count"
_PREINSTALLED = "berth/driver"
# Whole GPUs, MIG instances, and either of them shared, which GPU plugins advertise.
_MANAGED = re.compile(r"nvidia\.com/(gpu|mig-[0-9a-z.+-]+?)(\.shared)?")


def layouts(gpu: Gpu | None) -> dict[str, Instances]:
    """Return MIG layouts of mig-parted, by the name that the label `nvidia.com/mig.config` has."""
    mig = gpu.mig if gpu is not None else {}
    found = {f"all-{profile}": {profile: count} for profile, count in mig.items()}
    smallest: dict[int, str] = {}
    for profile in mig:
        smallest.setdefault(mig_slices(profile), profile)
    if smallest:
        found["all-balanced"] = {smallest[size]: count for size, count in ((1, 2), (2, 1), (3, 1))}
    return found | {DISABLED: {}}


def gpu_of(labels: Labels) -> Gpu | None:
    """Return the kind of a node's GPUs."""
    return GPUS.get(labels.get(ACCELERATOR_LABEL, ""))


def gpu_count(labels: Labels) -> int:
    """Return the number of GPUs in a node; 0 without any."""
    count = labels.get(_COUNT, "")
    return int(count) if ACCELERATOR_LABEL in labels and count.isdecimal() else 0


def on_cos(labels: Labels) -> bool:
    """Whether a node runs Container-Optimized OS."""
    return labels.get(SYSTEM) == "cos"


def preinstalled(labels: Labels) -> bool:
    """Whether a node's image has a driver in the folder that pods look into."""
    return labels.get(_PREINSTALLED) == "preinstalled"


def gke_devices(labels: Labels) -> dict[str, int]:
    """Return the devices that GKE's plugin advertises, by resource; none where it does not run."""
    runs = DRIVER in labels and labels.get(NO_GKE_PLUGIN_LABEL) != "true"
    return {GPU_RESOURCE: count} if (count := gpu_count(labels)) and runs else {}


def state_of(labels: Labels) -> str:
    """Return what the MIG manager says of the layout that a node's label asks for."""
    return SUCCESS if labels[MIG_LABEL] in layouts(gpu_of(labels)) else FAILED


def cut(labels: Labels) -> Instances:
    """Return the MIG instances of each GPU of a node whose MIG manager has followed the label.

    Simplified: GPUs that cannot be cut as the label says are whole.
    """
    return (
        layouts(gpu_of(labels)).get(labels.get(MIG_LABEL, ""), {})
        if labels.get(MIG_STATE) == SUCCESS
        else {}
    )


def managed(resource: str) -> bool:
    """Whether a GPU plugin sets a resource and takes it away."""
    return _MANAGED.fullmatch(resource) is not None


def status_change(
    resources: Mapping[str, int], status: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str | None]]:
    """Return a merge patch of a node's status that shows these resources and no others.

    Simplified: a kubelet shows 0 of a resource that is no longer advertised, until it restarts.
    """
    change: dict[str, dict[str, str | None]] = {}
    for part in ("capacity", "allocatable"):
        shown = status.get(part) or {}
        new = {
            name: str(count) for name, count in resources.items() if shown.get(name) != str(count)
        }
        gone = {name: None for name in shown if managed(name) and name not in resources}
        if new or gone:
            change[part] = {**new, **gone}
    return change
