"""A fresh copy of the source tree for each test."""

from pathlib import Path

import pytest

from tests.unit.adding.copy import Copy


@pytest.fixture
def tree(tmp_path: Path) -> Copy:
    return Copy.make(tmp_path / "berth")
