"""Number of the tests' workers, by a machine's cores and memory."""

from __future__ import annotations

import pytest

from tests.scheduling import workers

GIB = 1 << 30


@pytest.mark.parametrize(
    ("cores", "memory", "number"), [(2, 8 * GIB, 2), (2, 64 * GIB, 4), (16, 24 * GIB, 8), (1, GIB, 1)]
)
def test_workers_have_room(cores: int, memory: int, number: int) -> None:
    assert workers(cores, memory) == number
