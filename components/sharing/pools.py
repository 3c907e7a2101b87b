"""Node pools with the devices that they offer to pods."""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.components.core.bounds import Bounds
from berth.components.core.words import counted
from berth.components.gke import PoolSettings
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.sharing.modes import WHOLE, AnyMode, Offer, Profiles


@dataclass(frozen=True)
class Pool:
    """A node pool and the devices that its nodes advertise."""

    name: str
    settings: PoolSettings
    profile: AnyMode
    """Sharing mode of its GPUs."""
    offer: Offer | None
    """Devices of a node; None without GPUs."""

    @property
    def per_node(self) -> int:
        """GPUs, or shares of them, that pods can ask of one node."""
        return self.offer.per_node if self.offer else 0

    @property
    def at_most(self) -> int:
        """Largest number of GPUs, or shares of them, that the pool can have."""
        return self.settings.nodes_at_most * self.per_node

    @property
    def grows_from_zero(self) -> bool:
        """Whether GKE's cluster autoscaler adds the pool's first node."""
        return self.settings.nodes_at_least == 0 and isinstance(self.settings.nodes, Bounds)

    @property
    def shared(self) -> bool:
        """Whether one GPU serves several pods."""
        return self.offer is not None and self.profile.facts.shared

    @property
    def unit(self) -> str:
        """Noun for one device: a GPU, a share of one, a MIG instance."""
        return self.profile.facts.unit if self.shared else "GPU"

    def counted(self, count: int) -> str:
        """Return a number of devices in words: `1 GPU`, `4 shares`."""
        return counted(count, self.unit)

    @property
    def gpu_unit(self) -> GpuUnit:
        """One device in words for people, with its part of a GPU and its memory."""
        return self.profile.gpu_unit(self.settings.machine)

    @property
    def sharing(self) -> str:
        """Sharing mode in words for people; empty for whole GPUs."""
        return self.profile.facts.words if self.shared else ""

    @property
    def made_of(self) -> str:
        """Source of the capacity: `4 × a4-highgpu-8g with 8 GPUs, each shared by 4`."""
        machine = self.settings.machine
        text = f"{self.settings.nodes_at_most} × {machine.name} with {machine.gpus}"
        if not self.shared:
            return text
        return f"{text} GPUs, each {self.profile.facts.divided} {self.per_node // machine.gpus}"


Pools = Mapping[str, Pool]
"""An environment's pools by name."""


def offered_pools(pools: Mapping[str, PoolSettings], profiles: Profiles) -> dict[str, Pool]:
    """Return the pools with their offers, except those whose profile does not fit."""
    fitting: dict[str, Pool] = {}
    for name, settings in pools.items():
        profile = WHOLE if settings.sharing is None else profiles.get(settings.sharing)
        if profile is None or profile.problem(settings.machine):
            continue
        offer = profile.offer(settings.machine, by_operator=settings.by_operator)
        fitting[name] = Pool(name, settings, profile, offer)
    return fitting
