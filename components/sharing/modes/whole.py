"""Mode `none`: whole GPUs."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from berth.components.sharing.modes.mode import Mode


class Whole(Mode):
    """Whole GPUs."""

    kind: Literal["none"] = "none"
    """`none`: whole GPUs."""

    foreign: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("replicas", "renameByDefault", "failRequestsGreaterThanOne", "strategy", "profile"),
        "whole GPUs have no other keys than `kind`",
    )
