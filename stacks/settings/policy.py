"""Settings of the policies."""

from __future__ import annotations

from berth.components.core.settings import Settings
from berth.components.core.types import NonEmpty


class PolicySettings(Settings):
    """Settings of the policies, and the policies that are switched off."""

    required_labels: list[NonEmpty] = ["owner", "cost-center"]
    """Labels that a production environment must have in `labels`."""
    waived: dict[NonEmpty, NonEmpty] = {}
    """Policies that are switched off here, each with the reason."""
