"""Environments on Google Cloud that a new repository can start with: stacks that berth ships."""

import re
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML

from berth.cli.repository.shipped import StartName, shipped_text
from berth.components.core.types import region_of

_FOLDERS: dict[StartName, str] = {
    "dev": "stacks",
    "prod": "stacks",
    "mixed": "stacks/gallery",
    "solo": "stacks/gallery",
}


@dataclass(frozen=True)
class Start:
    """Environment as berth ships it.

    Attributes:
        name: name of its stack.
        text: text of the stack's file.
        project: Google Cloud project in the text, which stands for the user's.
        zone: zone of its nodes in the text.
    """

    name: StartName
    text: str
    project: str
    zone: str

    @property
    def path(self) -> str:
        """Path of the stack's file in a repository."""
        return f"stacks/Pulumi.{self.name}.yaml"

    def text_for(self, project: str, zone: str) -> str:
        """Return the text with another project and zone, and with the zone's region."""
        # The zone stands before its region, which is its beginning.
        values = {
            self.project: project,
            self.zone: zone,
            region_of(self.zone): region_of(zone),
        }
        pattern = "|".join(map(re.escape, values))
        return re.sub(pattern, lambda found: values[found[0]], self.text)


def start_named(name: StartName) -> Start:
    """Return an environment by the name of its stack."""
    text = shipped_text(f"{_FOLDERS[name]}/Pulumi.{name}.yaml")
    document = YAML(typ="safe", pure=True).load(text)
    environment: dict[str, Any] = document["config"]["berth:environment"]
    zone = environment.get("zone") or environment["zones"][0]
    return Start(name, text, environment["project"], zone)
