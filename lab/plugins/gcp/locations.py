"""Google Cloud's regions and their zones.

From "Regions and zones" (docs.cloud.google.com/compute/docs/regions-zones), without the zones for
AI only. Nothing here says which machine types a zone offers: the lab has them all everywhere.
"""

from pathlib import Path

import yaml

_LETTERS: dict[str, str] = yaml.safe_load(Path(__file__).with_name("locations.yaml").read_text())


def _zones(region: str, letters: str) -> tuple[str, ...]:
    return tuple(f"{region}-{letter}" for letter in letters)


REGIONS = {region: _zones(region, letters) for region, letters in _LETTERS.items()}
ZONES = {zone: region for region, zones in REGIONS.items() for zone in zones}


def region_of(location: str) -> str:
    """The region of a zone; a region is its own."""
    return location if location in REGIONS else ZONES[location]


def default_zones(location: str) -> list[str]:
    """Return the default zones of a cluster's nodes: the zone, or three zones of the region."""
    return [location] if location in ZONES else list(REGIONS[location][:3])
