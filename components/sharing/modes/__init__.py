"""Sharing modes: settings, limits, words, node labels, plugin config.

A mode is known to berth when it is a member of the union below.
"""

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field

from berth.components.sharing.modes.facts import Facts
from berth.components.sharing.modes.mig import Mig
from berth.components.sharing.modes.mode import Mode, Offer
from berth.components.sharing.modes.shares import Mps, TimeSlicing
from berth.components.sharing.modes.whole import Whole

AnyMode = Whole | TimeSlicing | Mps | Mig

SharingProfile = Annotated[AnyMode, Field(discriminator="kind")]
"""A named way to share the GPUs of a pool."""

MODES: tuple[type[Mode], ...] = get_args(AnyMode)

Profiles = Mapping[str, AnyMode]
"""An environment's sharing profiles by name."""

WHOLE = Whole()
"""GPUs are not shared."""
