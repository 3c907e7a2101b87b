"""Distribution of tests to workers: those of a file to one worker, in order, and those of the
machine's one real node to one worker.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from xdist.scheduler import LoadFileScheduling

ONE_AT_A_TIME = ("tests/real/", "tests/containers/")
"""Folders whose tests use what a machine has once: the real node, containers."""

# The longest begin first, so that the end does not wait for them.
_ORDER = (*ONE_AT_A_TIME, "tests/lab/test_pages.py", "tests/lab/test_workflows.py", "tests/lab/")


class ByFile(LoadFileScheduling):  # type: ignore[misc] # xdist says nothing of its types
    """Scheduler that gives a file's tests, and all tests of some folders, to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ONE_AT_A_TIME):
            return ONE_AT_A_TIME[0]
        return str(super()._split_scope(nodeid))


def longest_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return tests in their order of start; those of one file stay together and in order."""

    def rank(item: pytest.Item) -> int:
        return next((place for place, folder in enumerate(_ORDER) if item.nodeid.startswith(folder)), len(_ORDER))

    return sorted(items, key=rank)
