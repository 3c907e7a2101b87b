"""Node pools with what they offer to pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from berth.components.core.bounds import Bounds
from berth.components.gke import PoolSettings
from berth.components.hardware import mig
from berth.components.sharing.settings import WHOLE, Offer, Profiles, SharingProfile, offer_of


@dataclass(frozen=True)
class Pool:
    """A node pool and what its nodes advertise.

    Attributes:
        name: the pool's name.
        settings: its settings.
        profile: how its GPUs are shared.
        offer: what a node advertises; None where it has no GPUs.
    """

    name: str
    settings: PoolSettings
    profile: SharingProfile
    offer: Offer | None

    @property
    def per_node(self) -> int:
        """GPUs, or shares of them, that pods can ask of one node."""
        return self.offer.per_node if self.offer else 0

    @property
    def at_most(self) -> int:
        """GPUs, or shares of them, that the pool can ever have."""
        return self.settings.nodes_at_most * self.per_node

    @property
    def grows_from_zero(self) -> bool:
        """GKE's cluster autoscaler adds its first node."""
        return self.settings.nodes_at_least == 0 and isinstance(self.settings.nodes, Bounds)

    @property
    def shared(self) -> bool:
        """One GPU serves several pods."""
        return self.offer is not None and self.profile.kind != "none"

    @property
    def unit(self) -> str:
        """What one of the offered resource is called: a GPU, a share of one, a MIG instance."""
        if not self.shared:
            return "GPU"
        return f"{self.profile.profile} instance" if self.profile.kind == "mig" else "share"

    def counted(self, count: int) -> str:
        """`1 GPU`, `4 shares`."""
        return f"{count} {self.unit}" if count == 1 else f"{count} {self.unit}s"

    @property
    def sharing(self) -> str:
        """How its GPUs are shared, for people, with what matters most; empty where they are not."""
        match self.profile.kind if self.shared else "none":
            case "time-slicing":
                return f"time-slicing × {self.profile.replicas}, memory not isolated"
            case "mps":
                return f"MPS × {self.profile.replicas}"
            case "mig":
                return f"MIG {self.profile.profile}"
            case _:
                return ""

    @property
    def made_of(self) -> str:
        """Where its capacity comes from: `4 × a4-highgpu-8g with 8 GPUs, each shared by 4`."""
        machine = self.settings.machine
        text = f"{self.settings.nodes_at_most} × {machine.name} with {machine.gpus}"
        if not self.shared:
            return text
        each = self.per_node // machine.gpus
        return f"{text} GPUs, each {'cut into' if self.profile.kind == 'mig' else 'shared by'} {each}"


Pools = Mapping[str, Pool]
"""An environment's pools by name."""


def offered(pools: Mapping[str, PoolSettings], profiles: Profiles) -> dict[str, Pool]:
    """The pools with what they offer; those with a profile that doesn't exist or doesn't fit are left out."""
    known: dict[str, Pool] = {}
    for name, settings in pools.items():
        profile = WHOLE if settings.sharing is None else profiles.get(settings.sharing)
        if profile is None or not has_instances(settings, profile):
            continue
        offer = offer_of(settings.machine, profile, by_operator=settings.by_operator)
        known[name] = Pool(name, settings, profile, offer)
    return known


def has_instances(settings: PoolSettings, profile: SharingProfile) -> bool:
    """The pool's GPUs can be cut as the profile says, where it is MIG's."""
    return profile.kind != "mig" or profile.profile in mig.INSTANCES.get(settings.machine.accelerator, {})
