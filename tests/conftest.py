"""What all tests share: golden files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden anew from what the code makes now"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests go to one worker, in order: they share a fleet, and each builds on those before it.

    Those of the real node all go to one: a second node on this machine would be in the first one's way.
    """
    for item in items:
        where = item.path.relative_to(Path(__file__).parent)
        group = where.parts[0] if where.parts[0] == "real" else str(where)
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Any], None]:
    """Compare a value with tests/golden/<name>.yaml, or write that file with --update-golden."""

    def compare(name: str, value: Any) -> None:
        path = GOLDEN / f"{name}.yaml"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump(value, sort_keys=True, allow_unicode=True), encoding="utf-8")
        assert path.exists(), f"{path} is missing; read what the code makes and keep it with --update-golden"
        assert value == yaml.safe_load(path.read_text(encoding="utf-8"))

    return compare
