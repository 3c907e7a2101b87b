"""Node pool whose creation or update Google Cloud refused."""

from dataclasses import dataclass

from berth.components.gke.node_pool_arguments import NodePlace
from berth.components.gke.pool_settings import PoolSettings


@dataclass(frozen=True)
class FailedPool:
    """Node pool that an error is about.

    Attributes:
        name: the pool's name in the settings.
        settings: the pool's settings.
        place: place of the pool's nodes.
        written: file and line of the settings, where known.
    """

    name: str
    settings: PoolSettings
    place: NodePlace
    written: str = ""

    @property
    def key(self) -> str:
        """Key of the pool below `environment`."""
        return f"pools.{self.name}"

    @property
    def machines(self) -> str:
        """Machine type, with the zones where they are known."""
        zones = " or ".join(self.place.zones)
        return f"{self.settings.machine_type} in {zones}" if zones else self.settings.machine_type

    @property
    def zones(self) -> tuple[str, ...]:
        """Zones of the nodes; one that stands for any where GKE chooses."""
        return tuple(self.place.zones) or ("ZONE",)

    @property
    def reservation_project(self) -> str:
        """Project that owns the pool's reservation."""
        return self.settings.capacity.project or self.place.project

    @property
    def reservation(self) -> str:
        """The pool's reservation with its project, in words."""
        name = self.settings.capacity.reservation
        return f"reservation {name!r} of project {self.reservation_project}"

    @property
    def describe_reservation(self) -> str:
        """Commands that show the pool's reservation, one for each zone."""
        project = self.reservation_project
        return "; ".join(
            f"gcloud compute reservations describe {self.settings.capacity.reservation}"
            f" --project {project} --zone {zone}"
            for zone in self.zones
        )
