"""Fixtures and scheduling of all tests: golden files, and their distribution to workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.leftovers import Leftovers
from tests.scheduling import ByFile, in_order, workers

# xdist gives its workers the controller's width, by which rich would fold tables.
os.environ.pop("COLUMNS", None)

GOLDEN = Path(__file__).parent / "golden"

FIRST_FAILURES = 3
FAILURE_CHARACTERS = 600


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden anew from what the code makes now"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Leftovers())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Number of workers of `--numprocesses auto`; that of `logical` stays the number of cores."""
    if config.option.numprocesses != "auto":
        return None
    return workers(psutil.cpu_count() or 1, psutil.virtual_memory().total)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Repeat the first failures last: later ones may follow from them, and CI keeps only the end of
    a long output.
    """
    yield
    stats = terminalreporter.stats
    # A file that cannot be imported has no time of start.
    failures = sorted(stats.get("failed", []) + stats.get("error", []), key=lambda report: getattr(report, "start", 0))
    for report in failures[:FIRST_FAILURES]:
        terminalreporter.section(f"first failures: {report.nodeid} ({report.when})", sep="-")
        terminalreporter.write_line(report.longreprtext[-FAILURE_CHARACTERS:])


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


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only folder on PATH, empty at first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder
