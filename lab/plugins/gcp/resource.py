"""Resource types of the simulated cloud: how each is named, created, changed and removed.

Which changes replace a resource, which values stay, and which values are refused are facts about
the fields of Google's provider. Rules of Google's API that are not in these facts are not
simulated: berth's own checks of the settings have them, with their sources.
"""

# ruff: noqa: ARG002 (most types need nothing of what a method gets)

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pulumi.runtime.rpc import UNKNOWN

from berth.components.gke.provider_fields import ResourceFields, resource_fields
from berth.lab.plugins.gcp import conditions
from berth.lab.plugins.gcp.conditions import Conditions
from berth.lab.plugins.gcp.differences import differences
from berth.lab.plugins.gcp.engine import Engine
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.locations import REGIONS, ZONES
from berth.lab.plugins.gcp.planned import Planner
from berth.lab.plugins.gcp.store import Store, StoredRecord


@dataclass(frozen=True)
class Cloud:
    """Surroundings of a resource."""

    store: Store
    fleet: SimulatedFleet
    engine: Engine
    urn: str

    def say(self, message: str) -> None:
        """Show the user what is being done to the resource, until the next line."""
        self.engine.status(self.urn, f"simulated GKE: {message}")

    def warn(self, message: str) -> None:
        """Tell the user something that stays."""
        self.engine.warn(self.urn, f"simulated GKE: {message}")

    def conditions(self) -> Conditions:
        """Return the conditions of the projects as the file has them at this moment."""
        return conditions.of_cloud(self.store.folder)


@dataclass(frozen=True)
class Edit:
    """Edit of a resource.

    Attributes:
        state: the recorded outputs.
        inputs: the inputs that are asked for; parts may be unknown.
        plan: the fields that can be given, as the provider plans them.
    """

    state: dict[str, Any]
    inputs: dict[str, Any]
    plan: dict[str, Any]


class ResourceType:
    """Resource type. Methods that change something run in the store's lock."""

    token: str
    """The engine's type token."""
    title: str
    computed: tuple[str, ...]
    """Outputs that are known only once the resource is there."""
    located: str = ""
    """Input that says where the resource is (`region`, `location`); none for global resources."""
    named: bool = True
    path: str
    """Template of the resource's path."""

    @property
    def facts(self) -> ResourceFields:
        """Facts about the type's fields."""
        return resource_fields()[self.token]

    def id(self, inputs: dict[str, Any]) -> str:
        """Return the resource's path."""
        return self.path.format_map({key: last_part(value) for key, value in inputs.items()})

    def differences(
        self, state: dict[str, Any], inputs: dict[str, Any], ignored: Iterable[str] = ()
    ) -> dict[str, Kind]:
        """Kind of each difference by path, such as `nodeConfig.taints[0].value`.

        Args:
            state: the recorded outputs.
            inputs: the inputs that are asked for; parts may be unknown, which counts as different.
            ignored: paths whose difference, or one below them, does not count.
        """
        plan = Planner(state, inputs, self.facts).planned()
        replaces = self.customize(Edit(state, inputs, plan))
        return differences(state, plan, self.facts, ignored, replaces=replaces)

    def kept(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return inputs as Google keeps them: with its defaults, and with whole references."""
        return dict(inputs)

    def customize(self, edit: Edit) -> bool:
        """Change a plan as the provider's own code does (CustomizeDiff).

        Returns:
            Whether that code replaces the resource.
        """
        return False

    def create(self, cloud: Cloud, record: StoredRecord) -> None:
        """Fill in the state of a new record; the caller stores it."""

    def update(self, cloud: Cloud, old: StoredRecord, record: StoredRecord) -> None:
        """Bring the record's state to the new inputs; the caller stores the record."""

    def delete(self, cloud: Cloud, record: StoredRecord) -> None:
        """Remove the resource's parts, if it is not protected; the caller removes the record."""

    def settle(self, cloud: Cloud, record: StoredRecord) -> None:
        """Create what the record says, after it is stored."""

    def undo(self, cloud: Cloud, record: StoredRecord) -> None:
        """Take away what a creation that failed half way has made."""
        self.delete(cloud, record)

    def unfinished(self, cloud: Cloud, old: StoredRecord | None, record: StoredRecord) -> list[str]:
        """Why the resource, new or changed, is not as it should be; empty if it is."""
        return []

    def observe(self, cloud: Cloud, record: StoredRecord) -> StoredRecord:
        """The record as it really is: what others changed is drift."""
        return record

    def outputs(self, record: StoredRecord) -> dict[str, Any]:
        """The resource's outputs in the provider's shape."""
        raise NotImplementedError


def location_problems(kind: ResourceType, inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a problem for a place that the lab does not know; the API answers 403 or 404."""
    place = inputs.get(kind.located)
    if (
        place in (None, UNKNOWN)
        or place in REGIONS
        or (kind.located == "location" and place in ZONES)
    ):
        return []
    return [(kind.located, f"{place!r} is not a {kind.located} of Google Cloud that the lab knows")]


def whole_reference(reference: Any, parent: str) -> Any:
    """Return the path that Google keeps for a bare name; paths, links and unknown values stay.

    Args:
        reference: name, path or self link.
        parent: path of the collection, such as `projects/some/global/networks`.
    """
    is_name = isinstance(reference, str) and "/" not in reference and reference != UNKNOWN
    return f"{parent}/{reference}" if is_name else reference


def last_part(reference: object) -> str:
    """The name in a reference: a name itself, a path or a self link."""
    return str(reference).rstrip("/").rsplit("/", 1)[-1]


def number_of(resource: str) -> str:
    """A number as Google gives resources, the same for the same path."""
    return str(int(hashlib.sha256(resource.encode()).hexdigest()[:15], 16) + 10**17)
