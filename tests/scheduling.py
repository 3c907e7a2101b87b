"""How tests are shared out among workers: a file's to one worker, in order; those of this machine's
one real node to one as well.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from xdist.scheduler import LoadFileScheduling

ONE_AT_A_TIME = ("tests/real/", "tests/containers/")
"""Folders whose tests use what a machine has once: the real node, containers."""

# What takes longest begins first: nobody waits for it at the end.
_ORDER = (*ONE_AT_A_TIME, "tests/lab/test_workflows.py", "tests/lab/")


class ByFile(LoadFileScheduling):  # type: ignore[misc] # xdist says nothing of its types
    """A file's tests go to one worker, and all of some folders."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ONE_AT_A_TIME):
            return ONE_AT_A_TIME[0]
        return str(super()._split_scope(nodeid))


def longest_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Tests in the order in which they are to begin; those of one file stay together, and in their
    order.
    """

    def rank(item: pytest.Item) -> int:
        return next((place for place, folder in enumerate(_ORDER) if item.nodeid.startswith(folder)), len(_ORDER))

    return sorted(items, key=rank)
