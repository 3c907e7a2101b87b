"""Number of workers, and distribution of tests to them: those of a file to one worker, in order,
and those of the machine's one real node to one worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

ONE_AT_A_TIME = ("tests/real/", "tests/containers/")
"""Folders whose tests use what a machine has once: the real node, containers."""

WORKER_BYTES = 3 << 30
"""Memory that a worker may take: its lab has 2 GiB, the engine and its plugins the rest."""

WORKERS_A_CORE = 2
"""Workers for a core: tests of the lab wait for half of their time."""

# The pages take longest, since their order is one. Unit tests follow, so that a failure of theirs
# is seen early, then the tests of the lab: first a small file whose tests wait for nodes to go.
_FIRST = (*ONE_AT_A_TIME, "tests/lab/test_pages", "tests/unit/", "tests/lab/test_shipped_service", "tests/lab/")


class ByFile(LoadFileScheduling):  # type: ignore[misc] # xdist says nothing of its types
    """Scheduler that gives a file's tests, and all tests of some folders, to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ONE_AT_A_TIME):
            return ONE_AT_A_TIME[0]
        return str(super()._split_scope(nodeid))


def workers(cores: int, memory: int) -> int:
    """Return the number of workers for a machine with so many cores and bytes of memory."""
    return max(1, min(cores * WORKERS_A_CORE, memory // WORKER_BYTES))


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return tests in their order of start; those of one file stay together and in order.

    Of the files of a folder, the largest begin first, so that the end does not wait for them.
    """

    def rank(item: pytest.Item) -> tuple[int, int]:
        place = next((place for place, start in enumerate(_FIRST) if item.nodeid.startswith(start)), len(_FIRST))
        return place, -_size(item.path)

    return sorted(items, key=rank)


@cache
def _size(path: Path) -> int:
    return path.stat().st_size
