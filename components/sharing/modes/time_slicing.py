"""Mode `time-slicing`: pods take turns on a GPU."""

from __future__ import annotations

from typing import ClassVar, Literal

from berth.components.sharing.modes.shares import Shares


class TimeSlicing(Shares):
    """Time slices of a GPU, without isolation of memory or faults."""

    kind: Literal["time-slicing"]
    """`time-slicing`: pods take turns, without isolation of memory or faults."""
    fail_requests_greater_than_one: bool = False
    """Refuse pods that ask for more than one share, since two shares are no more compute."""

    section: ClassVar[str] = "timeSlicing"
    memory_note: ClassVar[str] = (
        "; time-slicing does not isolate memory, so one pod can make its neighbours fail with out-of-memory errors"
    )

    @property
    def words(self) -> str:
        """Short description for tables."""
        return f"time-slicing × {self.replicas}, memory not isolated"

    @property
    def one_each(self) -> str:
        """Reason why a pod gets one share at most; empty where it may ask for more."""
        return "failRequestsGreaterThanOne" if self.limited else ""

    @property
    def limited(self) -> bool:
        """Whether the config tells the plugin to refuse pods that ask for more than one share."""
        return self.fail_requests_greater_than_one
