"""Base of the modes in which the device plugin advertises each GPU several times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from berth.components.hardware.facts import Machine
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.sharing.modes.mode import Mode


class Shares(Mode):
    """Shares of a GPU (https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus)."""

    replicas: Annotated[int, Field(strict=True, ge=2, le=64)]
    """Number of pods that share one GPU."""
    rename_by_default: bool = False
    """Advertise `nvidia.com/gpu.shared` instead of `nvidia.com/gpu`."""

    section: ClassVar[str]
    """Key of the mode in the device plugin's config."""
    foreign: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("strategy", "profile"), "strategy and profile belong to MIG; a profile of shares has neither"
    )

    @property
    def resource(self) -> str:
        """Resource under which the shares are advertised."""
        return f"{GPU_RESOURCE}.shared" if self.rename_by_default else GPU_RESOURCE

    @property
    def counted_with(self) -> str:
        """Edit of the profile with which nodes advertise nvidia.com/gpu, where they do not."""
        return "take `renameByDefault` out of profile" if self.rename_by_default else ""

    def per_gpu(self, machine: Machine) -> int:
        """Return the number of shares of one GPU."""
        del machine
        return self.replicas

    def plugin_sharing(self) -> dict[str, Any]:
        """Return the section `sharing` of the device plugin's config."""
        renamed = {"renameByDefault": True} if self.rename_by_default else {}
        limited = {"failRequestsGreaterThanOne": True} if self.limited else {}
        resources = [{"name": GPU_RESOURCE, "replicas": self.replicas}]
        return {self.section: {**renamed, **limited, "resources": resources}}

    @property
    def limited(self) -> bool:
        """Whether the config tells the plugin to refuse pods that ask for more than one share."""
        return False
