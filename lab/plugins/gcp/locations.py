"""Google Cloud's regions and their zones.

From "Regions and zones" (docs.cloud.google.com/compute/docs/regions-zones), without the zones for
AI only. Nothing here says which machine types a zone offers: the lab has them all everywhere.

Answers to (read): https://docs.cloud.google.com/compute/docs/regions-zones.
"""

from __future__ import annotations

_ZONES = {
    "africa-south1": "abc",
    "asia-east1": "abc",
    "asia-east2": "abc",
    "asia-northeast1": "abc",
    "asia-northeast2": "abc",
    "asia-northeast3": "abc",
    "asia-south1": "abc",
    "asia-south2": "abc",
    "asia-southeast1": "abc",
    "asia-southeast2": "abc",
    "australia-southeast1": "abc",
    "australia-southeast2": "abc",
    "europe-central2": "abc",
    "europe-north1": "abc",
    "europe-north2": "abc",
    "europe-southwest1": "abc",
    "europe-west1": "bcd",
    "europe-west2": "abc",
    "europe-west3": "abc",
    "europe-west4": "abc",
    "europe-west6": "abc",
    "europe-west8": "abc",
    "europe-west9": "abc",
    "europe-west10": "abc",
    "europe-west12": "abc",
    "me-central1": "abc",
    "me-central2": "abc",
    "me-west1": "abc",
    "northamerica-northeast1": "abc",
    "northamerica-northeast2": "abc",
    "northamerica-south1": "abc",
    "southamerica-east1": "abc",
    "southamerica-west1": "abc",
    "us-central1": "abcf",
    "us-east1": "bcd",
    "us-east4": "abc",
    "us-east5": "abc",
    "us-south1": "abc",
    "us-west1": "abc",
    "us-west2": "abc",
    "us-west3": "abc",
    "us-west4": "abc",
}

REGIONS = {region: tuple(f"{region}-{letter}" for letter in letters) for region, letters in _ZONES.items()}
ZONES = {zone: region for region, zones in REGIONS.items() for zone in zones}


def region_of(location: str) -> str:
    """The region of a zone; a region is its own.

    Raises:
        KeyError: when Google has no such place.
    """
    return location if location in REGIONS else ZONES[location]


def default_zones(location: str) -> list[str]:
    """Return the default zones of a cluster's nodes: the zone, or three zones of the region."""
    return [location] if location in ZONES else list(REGIONS[location][:3])
