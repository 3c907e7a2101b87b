"""Mode `time-slicing`: pods take turns on a GPU."""

from typing import ClassVar, Literal

from berth.components.sharing.modes.mode import Facts
from berth.components.sharing.modes.shares import Shares


class TimeSlicing(Shares):
    """Time slices of a GPU, without isolation of memory or faults."""

    kind: Literal["time-slicing"]
    """`time-slicing`: pods take turns, without isolation of memory or faults."""
    fail_requests_greater_than_one: bool = False
    """Refuse pods that ask for more than one share, since two shares are no more compute."""

    section: ClassVar[str] = "timeSlicing"
    gke_strategy: ClassVar[str] = "time-sharing"
    strategy_label: ClassVar[str] = "time-slicing"
    memory_note: ClassVar[str] = (
        "; time-slicing does not isolate memory, so one pod can make its neighbors fail with out-of-memory errors"
    )

    @property
    def facts(self) -> Facts:
        """Facts about the GPUs."""
        words, key = f"time-slicing × {self.replicas}, memory not isolated", "failRequestsGreaterThanOne"
        if not self.fail_requests_greater_than_one:
            return self.facts_of_shares(words)
        return self.facts_of_shares(words, one_each=key, **{key: True})
