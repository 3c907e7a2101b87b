"""A run of these tests that a signal ends leaves nothing of its lab and of the engine behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.project import CLONE, eventually
from tests.leftovers import MARK, end, processes

pytestmark = pytest.mark.lab

START_SECONDS = 300
RUNNING = {"kube-apiserver", "pulumi", "pulumi-language-python"}


def test_a_signal_leaves_nothing_of_the_lab_and_the_engine_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--numprocesses=1", "-p", "no:cacheprovider", f"--basetemp={tmp_path}"]
    environment = {key: value for key, value in os.environ.items() if key != MARK and not key.startswith("PYTEST_")}
    with subprocess.Popen([*command, "tests/lab/test_components.py"], cwd=CLONE, env=environment) as run:
        try:
            mark = str(run.pid)
            eventually(
                lambda: {process.info["name"] for process in processes(mark)} >= RUNNING,
                "an update runs",
                START_SECONDS,
            )
            run.send_signal(signal.SIGTERM)
            run.wait(timeout=60)
            left = processes(mark)
        finally:
            run.kill()
            end(mark)
    assert left == []
    assert run.returncode == pytest.ExitCode.INTERRUPTED
