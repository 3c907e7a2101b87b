"""Base of the modes in which the device plugin advertises each GPU several times."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from berth.components.hardware.facts import Machine
from berth.components.hardware.names import GKE_SHARES_LABEL, GKE_STRATEGY_LABEL, GPU_RESOURCE
from berth.components.sharing.modes.mode import Facts, Mode


class Shares(Mode):
    """Shares of a GPU (https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus)."""

    replicas: Annotated[int, Field(examples=[4], strict=True, ge=2, le=64)]
    """Number of pods that share one GPU."""
    rename_by_default: bool = False
    """Advertise `nvidia.com/gpu.shared` instead of `nvidia.com/gpu`."""

    section: ClassVar[str]
    """Key of the mode in the device plugin's config."""
    gke_strategy: ClassVar[str]
    """GKE's word for the mode."""
    memory_note: ClassVar[str] = ""
    """Isolation of GPU memory, as the end of a warning about too little of it."""
    foreign: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("strategy", "profile"), "strategy and profile belong to MIG; a profile of shares has neither"
    )

    def facts_of_shares(self, words: str, *, one_each: str = "", **plugin: bool) -> Facts:
        """Return the facts about shares: their words, why a pod gets one, flags of the plugin."""
        renamed = {"renameByDefault": True} if self.rename_by_default else {}
        resources = [{"name": GPU_RESOURCE, "replicas": self.replicas}]
        return Facts(
            unit="share",
            words=words,
            divided="shared by",
            resource=f"{GPU_RESOURCE}.shared" if self.rename_by_default else GPU_RESOURCE,
            counted_with="take `renameByDefault` out of profile",
            one_each=one_each,
            memory_note=self.memory_note,
            plugin={self.section: {**renamed, **plugin, "resources": resources}},
        )

    @property
    def by_gke(self) -> dict[str, str]:
        """GKE's labels of nodes whose GPUs GKE itself shares in this mode."""
        return {GKE_STRATEGY_LABEL: self.gke_strategy, GKE_SHARES_LABEL: str(self.replicas)}

    def per_gpu(self, machine: Machine) -> int:
        """Return the number of shares of one GPU."""
        del machine
        return self.replicas
