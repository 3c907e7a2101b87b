"""Settings of the keeper."""

from typing import Annotated

from pydantic import AfterValidator, Field

from berth.components.core.image import Image
from berth.components.core.settings import Settings
from berth.components.core.types import Duration
from berth.components.programs.lifetimes import parse_duration

# Seconds.
_SHORTEST_EVERY = 60
_LONGEST_EVERY = 1800


def _check_every(text: str) -> str:
    seconds = parse_duration(text)
    if seconds % 60 or not _SHORTEST_EVERY <= seconds <= _LONGEST_EVERY or 60 % (seconds // 60):
        raise ValueError(
            f"{text!r} is not an interval of whole minutes that divides an hour, from 1m to 30m;"
            " write for example 5m"
        )
    return text


class KeeperSettings(Settings):
    """Keeper: the CronJob that suspends and wakes berths by their lifecycle."""

    every: Annotated[Duration, AfterValidator(_check_every), Field(examples=["10m"])] = "5m"
    """Interval of the keeper's runs: whole minutes that divide an hour, from 1m to 30m."""
    image: Annotated[Image | None, Field(examples=["python:3.12-slim"])] = None
    """Image with Python 3.11 or newer. Default: the berths' image, of `defaults`."""

    @property
    def schedule(self) -> str:
        """Schedule of the CronJob."""
        return f"*/{parse_duration(self.every) // 60} * * * *"
