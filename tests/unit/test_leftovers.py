"""A run of the tests that a signal ends leaves no process behind, with workers and without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from berth.lab.home import CLONE
from tests.lab.project import eventually
from tests.leftovers import MARK, end, processes

# The processes of a lab are in sessions of their own, a language host is the child of a program
# that is killed, and some take no notice of SIGTERM.
TEST = """
import subprocess
import sys
from pathlib import Path

DEAF = [sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"]


def test_that_never_ends():
    children = [subprocess.Popen(DEAF, start_new_session=True), subprocess.Popen(["sh", "-c", "sleep 1000 & wait"])]
    Path("started").touch()
    children[0].wait()
"""


@pytest.mark.parametrize(("workers", "number"), [(0, signal.SIGTERM), (2, signal.SIGTERM), (2, signal.SIGINT)])
def test_a_signal_leaves_no_process_behind(tmp_path: Path, workers: int, number: signal.Signals) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_configure\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--numprocesses={workers}", "test_it.py"]
    environment = {key: value for key, value in os.environ.items() if key != MARK and not key.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(CLONE)
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as run:
        try:
            eventually((tmp_path / "started").exists, "the test runs")
            eventually(lambda: len(processes(str(run.pid))) == workers + 3, "the workers, a session, sh and sleep")
            run.send_signal(number)
            run.send_signal(number)
            output, _ = run.communicate(timeout=60)
            left = processes(str(run.pid))
        finally:
            run.kill()
            end(str(run.pid))
    assert left == []
    assert run.returncode == pytest.ExitCode.INTERRUPTED, output
