"""Facts about GPUs in a sharing mode."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from berth.components.hardware.names import GPU, GPU_RESOURCE


@dataclass(frozen=True)
class Facts:
    """Facts about GPUs in a sharing mode; the defaults are those of whole GPUs."""

    unit: str = "GPU"
    """Noun for one advertised device."""
    words: str = ""
    """Short description for tables, with the most important property."""
    divided: str = ""
    """Verb for the devices of one GPU: "8 GPUs, each shared by 4"; empty for whole GPUs."""
    resource: str = GPU_RESOURCE
    """Resource under which the devices are advertised."""
    counted_with: str = ""
    """Edit of the profile with which nodes advertise nvidia.com/gpu, where they do not."""
    one_each: str = ""
    """Reason why a pod gets one device at most."""
    memory_note: str = ""
    """Isolation of GPU memory, as the end of a warning about too little of it."""
    scaling_risk: str = ""
    """Reason why pods may find no GPU on a node that the autoscaler has just added."""
    mig_strategy: Literal["single", "mixed"] | None = None
    """MIG strategy, of which a cluster has one."""
    plugin: Mapping[str, Any] = field(default_factory=dict)
    """Section `sharing` of the device plugin's config."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of nodes beside that of the device plugin's config."""
    device: tuple[str, str, str] = ("gpu", GPU, "")
    """Name, device class and CEL selector of a claim's request."""
    claimable: bool = False
    """Whether NVIDIA's DRA driver serves the mode on nodes that berth does not create."""

    @property
    def shared(self) -> bool:
        """Whether one GPU serves several pods."""
        return bool(self.divided)
