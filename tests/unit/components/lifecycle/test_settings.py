"""Settings of a berth's life."""

from __future__ import annotations

import zoneinfo

import pytest

from berth.components.lifecycle import settings
from berth.components.lifecycle.settings import LifecycleShape


def test_the_zones_of_the_machine_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[None] = []

    def zones() -> set[str]:
        looks.append(None)
        return {"UTC", "Europe/Berlin"}

    monkeypatch.setattr(zoneinfo, "available_timezones", zones)
    settings._zones.cache_clear()  # noqa: SLF001
    for zone in ("UTC", "Europe/Berlin", "UTC"):
        LifecycleShape.model_validate({"zone": zone})
    settings._zones.cache_clear()  # noqa: SLF001
    assert len(looks) == 1
