"""A fresh copy of the source tree for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.adding.copy import Copy

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Copy:
    return Copy.make(tmp_path / "berth")
