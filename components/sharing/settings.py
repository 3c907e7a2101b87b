"""Sharing profiles: how one GPU serves several pods, and what a node pool offers to pods with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from berth.components.core.settings import Settings
from berth.components.hardware import mig
from berth.components.hardware.machines import Machine
from berth.components.hardware.names import GPU_RESOURCE

SHARED_GPU = f"{GPU_RESOURCE}.shared"
"""The resource of shared GPUs with `renameByDefault` (https://github.com/NVIDIA/k8s-device-plugin#with-cuda-time-slicing)."""


class SharingProfile(Settings):
    """A named way to share the GPUs of a pool."""

    kind: Literal["none", "time-slicing", "mps", "mig"]
    """`time-slicing`: pods take turns, no isolation of memory or faults. `mps`: pods run at once, each with a share of
    memory. `mig`: hardware instances, isolated. `none`: whole GPUs."""
    replicas: Annotated[int, Field(strict=True, le=64)] | None = None
    """Pods that share one GPU; for time-slicing and MPS."""
    rename_by_default: bool = False
    """Advertise `nvidia.com/gpu.shared` instead of `nvidia.com/gpu`; for time-slicing and MPS."""
    fail_requests_greater_than_one: bool = False
    """Refuse pods that ask for more than one share, since two shares are no more compute; for time-slicing."""
    strategy: Literal["single", "mixed"] | None = None
    """For MIG: `single` advertises instances as `nvidia.com/gpu`, `mixed` as `nvidia.com/mig-PROFILE`."""
    profile: str | None = None
    """For MIG: the instance, for example `1g.23gb`; every GPU is cut into as many as it holds."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> SharingProfile:
        shares, is_mig = self.kind in ("time-slicing", "mps"), self.kind == "mig"
        if self.kind == "mps" and (self.strategy or self.profile):
            raise ValueError(
                "MPS does not work on MIG instances (NVIDIA's device plugin refuses it); choose mps or mig"
            )
        if not is_mig and (self.strategy or self.profile):
            raise ValueError(f"strategy and profile are MIG's; a {self.kind} profile has neither")
        if shares and self.replicas is None:
            raise ValueError(f"{self.kind} needs `replicas`: how many pods share one GPU")
        if shares and self.replicas is not None and self.replicas < _FEWEST_REPLICAS:
            raise ValueError(f"replicas is {self.replicas}; sharing begins at 2, and `kind: none` gives whole GPUs")
        if not shares and (self.replicas is not None or self.rename_by_default):
            raise ValueError(
                f"replicas and renameByDefault are time-slicing's and MPS's; a {self.kind} profile has neither"
            )
        if self.kind != "time-slicing" and self.fail_requests_greater_than_one:
            raise ValueError("failRequestsGreaterThanOne is time-slicing's; MPS refuses such requests by itself")
        if is_mig and (self.strategy is None or self.profile is None):
            raise ValueError("mig needs `strategy` (single or mixed) and `profile`, for example 1g.23gb")
        return self


_FEWEST_REPLICAS = 2

WHOLE = SharingProfile(kind="none")
"""GPUs are not shared."""


@dataclass(frozen=True)
class Offer:
    """What a node of a pool advertises.

    Attributes:
        resource: the resource name that pods ask for.
        per_node: how many of it a node has.
        memory_gib: GPU memory that stands behind one of it; isolated only with MIG, and bounded with MPS.
        labels: feature labels that every node of the pool carries; none where GKE's own plugin serves it.
    """

    resource: str
    per_node: int
    memory_gib: Decimal
    labels: dict[str, str] = field(default_factory=dict)


def offer_of(machine: Machine, profile: SharingProfile, *, by_operator: bool) -> Offer | None:
    """What a node of this machine type advertises under a profile; None where it has no GPUs.

    Args:
        machine: the machine type. Its GPU must have the profile, where that is MIG's.
        profile: how its GPUs are shared.
        by_operator: NVIDIA's device plugin serves it, which also sets feature labels.
    """
    if not machine.gpus:
        return None
    whole = Decimal(machine.gpu_memory_gib)
    if profile.kind == "mig" and profile.profile:
        instances = machine.gpus * mig.INSTANCES[machine.accelerator][profile.profile]
        mixed = profile.strategy == "mixed"
        labels = {"nvidia.com/mig.strategy": str(profile.strategy), "nvidia.com/mig.config.state": "success"}
        resource = f"nvidia.com/mig-{profile.profile}" if mixed else GPU_RESOURCE
        return Offer(resource, instances, Decimal(mig.memory_gib(profile.profile)), labels)
    replicas = profile.replicas or 1
    labels = {
        "nvidia.com/gpu.count": str(machine.gpus),
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": profile.kind,
    }
    return Offer(
        resource=SHARED_GPU if profile.rename_by_default else GPU_RESOURCE,
        per_node=machine.gpus * replicas,
        memory_gib=whole / replicas,
        labels=labels if by_operator else {},
    )


Profiles = Mapping[str, SharingProfile]
"""An environment's sharing profiles by name."""
