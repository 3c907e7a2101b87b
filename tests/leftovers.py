"""Processes that a run of the tests has started: all carry a mark in their environment, by which
the run ends those that are left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from berth.lab import lifecycle
from berth.lab.home import Home
from berth.lab.processes import MARK as LAB_MARK
from berth.lab.progress import Progress

MARK = "BERTH_TEST_RUN"
"""Environment variable that every process of a run inherits: the pid of the run's main process."""

INTERRUPTED = threading.Event()
"""Whether a signal ends the tests: then fixtures start no program to clean up, which may take
minutes; the main process ends all that runs."""

_TERM_SECONDS, _KILL_SECONDS = 2.0, 5.0
_LOOK_SECONDS = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Leftovers:
    """Plugin of pytest that leaves no process behind, however the tests end."""

    def __init__(self) -> None:
        # A worker inherits the mark, and so does a run inside a test.
        self._is_main = os.environ.setdefault(MARK, str(os.getpid())) == str(os.getpid())
        for number in _SIGNALS:
            # A shell that runs the tests in the background ignores Ctrl-C for them, and programs
            # under test would inherit that.
            if number == signal.SIGINT or signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        INTERRUPTED.set()
        # `timeout` and make send a second one, which would interrupt the report and the end.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        # The main process's only children are xdist's workers, which Ctrl-C in a terminal reaches
        # as well.
        for worker in psutil.Process().children() if self._is_main else []:
            with contextlib.suppress(psutil.Error):
                worker.terminate()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        try:
            yield
        except BaseException:
            # Fixtures cannot clean up (see INTERRUPTED).
            if not INTERRUPTED.is_set():
                raise
        finally:
            if self._is_main:
                end(os.environ[MARK])


def end(run: str) -> None:
    """End the processes with a run's mark, but this one.

    No signal interrupts this: a second Ctrl-C would leave the rest behind.
    """
    before = [signal.signal(number, signal.SIG_IGN) for number in _SIGNALS]
    for home in _real_nodes(run):
        lifecycle.down(home, Progress())
    # Again, for what an ending process has started.
    while left := processes(run):
        for stop, seconds in ((psutil.Process.terminate, _TERM_SECONDS), (psutil.Process.kill, _KILL_SECONDS)):
            for process in left:
                with contextlib.suppress(psutil.Error):
                    stop(process)
            deadline = time.monotonic() + seconds
            while any(_has(process, run) for process in left) and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
    for number, handler in zip(_SIGNALS, before, strict=True):
        signal.signal(number, handler)


def processes(run: str) -> list[psutil.Process]:
    """Return the processes with a run's mark that are alive, without this one."""
    found = psutil.process_iter(["name"])
    return [process for process in found if process.pid != os.getpid() and _has(process, run)]


def _real_nodes(run: str) -> list[Home]:
    """Return the run's labs with a real node, which has more to undo than its processes."""
    folders = set()
    for process in processes(run):
        with contextlib.suppress(psutil.Error, OSError):
            folders.add(process.environ().get(LAB_MARK, "").rpartition(":")[0])
    homes = [Home(Path(folder)) for folder in sorted(filter(None, folders))]
    return [home for home in homes if lifecycle.had_real_node(home)]


def _has(process: psutil.Process, run: str) -> bool:
    """Return whether a process is alive and has a run's mark."""
    with contextlib.suppress(psutil.Error, OSError):
        alive = process.is_running() and process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
        return alive and process.environ().get(MARK) == run
    return False
