"""Node pool as the subject of rules: its settings, and what its environment decides about it."""

from dataclasses import dataclass

from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings


@dataclass(frozen=True)
class EnvironmentPool:
    """A node pool of an environment.

    Attributes:
        name: the pool's name.
        settings: the pool's own settings.
        environment: the environment that the pool belongs to.
    """

    name: str
    settings: PoolSettings
    environment: GkeSettings

    @property
    def zones(self) -> tuple[str, ...]:
        """Zones of the pool's nodes."""
        return self.environment.zones_of(self.settings)

    @property
    def zones_in_words(self) -> str:
        """Zones of the pool's nodes, separated by commas."""
        return ", ".join(self.zones)

    @property
    def in_several_zones(self) -> bool:
        """Whether the pool has nodes in more than one zone."""
        return len(self.zones) > 1

    @property
    def nvlink_domain(self) -> str:
        """Topology of the machine type's NVLink domain; empty without one."""
        return self.settings.machine.series.accelerator_topology


def environment_pools(environment: GkeSettings) -> list[EnvironmentPool]:
    """Return the pools of an environment as subjects of rules."""
    return [EnvironmentPool(name, pool, environment) for name, pool in environment.pools.items()]
