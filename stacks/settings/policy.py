"""Policies: what every environment keeps to, unless it says by name and with a reason that it does not."""

from __future__ import annotations

from berth.components.core.settings import Settings
from berth.components.core.types import NonEmpty


class PolicySettings(Settings):
    """What the environment's policies ask, and which of them are switched off."""

    required_labels: list[NonEmpty] = ["owner", "cost-center"]
    """Labels that a production environment has in `labels`."""
    waived: dict[NonEmpty, NonEmpty] = {}
    """Policies that are switched off here, each with the reason."""
