"""Fixtures of all tests, the number of workers, and the summary that repeats first failures."""

import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

# xdist gives its workers the controller's width, by which rich would fold tables.
os.environ.pop("COLUMNS", None)

GOLDEN = Path(__file__).parent / "golden"

FIRST_FAILURES = 3
FAILURE_CHARACTERS = 600

CLEAN_UP_SECONDS = 60

LONGEST = (
    "lab/test_fleet.py",
    "lab/test_commands.py",
    "lab/test_isolation.py",
    "lab/test_own_repository.py",
    "lab/test_lifecycle_of_berths.py",
    "lab/test_workflows.py",
    "lab/test_prod.py",
    "lab/test_pages.py",
    "lab/test_identities.py",
)
"""The longest files, the longest first; the others follow in the order of their names.

test_own_repository.py has a lab of its own, and begins while its worker has no other.
"""

WORKERS_A_CORE = 2
"""Workers for a core: tests of the lab wait for half of their time."""
WORKER_BYTES = 3 << 30
"""Memory that a worker may take: its lab has 2 GiB, the engine and its plugins the rest."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden anew from what the code makes now",
    )


def pytest_configure() -> None:
    # Fixtures take their labs down where a time limit ends the tests, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A shell that starts the tests in the background ignores Ctrl-C for them, and those of Ctrl-C
    # would wait forever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_keyboard_interrupt() -> None:
    """End xdist's workers, and wait while their fixtures take labs down: xdist kills them."""
    workers = [] if "PYTEST_XDIST_WORKER" in os.environ else psutil.Process().children()
    for worker in workers:
        worker.terminate()
    psutil.wait_procs(workers, timeout=CLEAN_UP_SECONDS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; the shortest, the unit tests, come last as before."""

    def place(item: pytest.Item) -> int:
        file = "/".join(item.path.parts[-2:])
        return LONGEST.index(file) if file in LONGEST else len(LONGEST)

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Number of workers of `--numprocesses auto`; that of `logical` stays the number of cores."""
    if config.option.numprocesses != "auto":
        return None
    return max(
        1,
        min(
            (psutil.cpu_count() or 1) * WORKERS_A_CORE,
            psutil.virtual_memory().total // WORKER_BYTES,
        ),
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Repeat the first failures last: later ones may follow from them, and CI keeps only the end of
    a long output.
    """
    yield
    stats = terminalreporter.stats
    # A file that cannot be imported has no time of start.
    failures = sorted(
        stats.get("failed", []) + stats.get("error", []),
        key=lambda report: getattr(report, "start", 0),
    )
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
            path.write_text(
                yaml.safe_dump(value, sort_keys=True, allow_unicode=True), encoding="utf-8"
            )
        assert path.exists(), (
            f"{path} is missing; read what the code makes and keep it with --update-golden"
        )
        assert value == yaml.safe_load(path.read_text(encoding="utf-8"))

    return compare


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only folder on PATH, empty at first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder
