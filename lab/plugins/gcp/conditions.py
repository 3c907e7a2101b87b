"""Conditions of the simulated projects: APIs, permissions, quotas, reservations, machines in stock.

They are read from `cloud/conditions.yaml` of the lab at each call, so that whoever edits the file,
a person or a test, sees at once what berth does when a quota is too small or a zone has run out.
The file is made from the one beside this module when it is first needed, and is never written
again.
"""

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError

from berth.components.core import whole_file
from berth.components.core.settings import Settings
from berth.lab.plugins.gcp.errors import ProviderError

SHIPPED = Path(__file__).parent / "conditions.yaml"
"""The conditions of a new lab."""

ANY_PROJECT = "*"

_APIS = (
    "cloudquotas",
    "cloudresourcemanager",
    "compute",
    "container",
    "file",
    "iam",
    "secretmanager",
    "storage",
)
SERVICES = tuple(f"{api}.googleapis.com" for api in _APIS)
"""The APIs that are enabled where a project's entry names none."""

Count = Annotated[int, Field(ge=0, strict=True)]


class Project(Settings):
    """Project."""

    services: list[str] = list(SERVICES)
    """Enabled APIs, such as `container.googleapis.com`; by default those that berth needs."""
    permissions: Literal["all"] | list[str] = "all"
    """Permissions of the caller, such as `container.clusters.create`; or `all`."""
    agent_roles: list[str] = ["roles/compute.networkUser", "roles/container.hostServiceAgentUser"]
    """Roles that GKE's own agents of all projects have in this one, the host of a Shared VPC."""
    quotas: dict[str, dict[str, Count]] = {}
    """Limits by region and metric, such as `NVIDIA_B200_GPUS`; a metric left out has no limit."""

    def may(self, permission: str) -> bool:
        """Whether the caller has a permission."""
        return self.permissions == "all" or permission in self.permissions


class Reservation(Settings):
    """Machines that were set aside for a project."""

    project: str
    """Project that owns the reservation; `*`: each project has one of its own."""
    name: str
    zone: str
    machine_type: str
    count: Count
    """Number of machines, those in use included."""
    blocks: list[str] = []
    """Names of the reservation's blocks."""
    sub_blocks: list[str] = []
    """Names of the sub-blocks of all blocks."""


class Stock(Settings):
    """Machines of a zone for those who reserved none."""

    zone: str
    machine_type: str
    capacity: Literal["on-demand", "spot", "flex-start"]
    """How machines are asked for; each kind has a stock of its own."""
    available: Count
    """Number of machines at the same time, those in use included. Who has more keeps them."""


class Conditions(Settings):
    """Conditions of all projects."""

    projects: dict[str, Project] = {ANY_PROJECT: Project()}
    """Projects by id; `*` is any project without an entry. By default, every project exists."""
    reservations: list[Reservation] = []
    stock: list[Stock] = []
    """Stocks that have an end; of everything else there is enough."""

    def project(self, name: str) -> Project | None:
        """Return a project's entry, else that of any project; None for an unknown project."""
        return self.projects.get(name) or self.projects.get(ANY_PROJECT)

    def reservation(self, project: str, name: str) -> Reservation | None:
        """Return a project's reservation of this name, else the one of any project."""
        for owner in (project, ANY_PROJECT):
            for entry in self.reservations:
                if (entry.project, entry.name) == (owner, name):
                    return entry.model_copy(update={"project": project})
        return None

    def limit(self, project: str, region: str, metric: str) -> int | None:
        """The quota of a metric, or None where nothing limits it."""
        entry = self.project(project)
        return None if entry is None else entry.quotas.get(region, {}).get(metric)

    def available(self, zone: str, machine_type: str, capacity: str) -> int | None:
        """Return the machines of a zone; None where there is no limit."""
        key = (zone, machine_type, capacity)
        found = [
            entry.available
            for entry in self.stock
            if (entry.zone, entry.machine_type, entry.capacity) == key
        ]
        return min(found, default=None)


def place(cloud: Path) -> None:
    """Put the shipped conditions into the folder of a simulated cloud that has none."""
    if not (cloud / SHIPPED.name).exists():
        cloud.mkdir(parents=True, exist_ok=True)
        whole_file.replace_file(cloud / SHIPPED.name, SHIPPED.read_text())


def of_cloud(folder: Path) -> Conditions:
    """Return the conditions of a simulated cloud as its folder has them now."""
    file = folder / SHIPPED.name
    try:
        place(folder)
        return Conditions.model_validate(yaml.safe_load(file.read_text()) or {})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in error.errors()
        )
    except (OSError, yaml.YAMLError) as error:
        problems = str(error)
    raise ProviderError(
        f"the simulated cloud's conditions in {file} are not readable ({problems}); fix the file,"
        " or delete it: the shipped ones are then put in its place"
    )
