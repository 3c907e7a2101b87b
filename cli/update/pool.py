"""Runs of the engine for many stacks, some at a time, with progress and a clean end."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import FrameType
from typing import Self

from berth.cli.pulumi_program import Pulumi
from berth.cli.update.progress import progress_bar

AT_ONCE = max(2, min(16, 2 * (os.cpu_count() or 1)))
"""Engines at once: one waits for the cluster while another one computes. An engine with its plugin
needs about 300 MiB of memory."""

_LOOK_SECONDS = 0.2

Task = Callable[[Pulumi], str]


class Pool:
    """Engines at once, which Ctrl-C and SIGTERM cancel together.

    Attributes:
        interrupts: number of interrupts so far.
        terminated: whether the first of them was SIGTERM.
        stop: event that the first interrupt sets.
    """

    def __init__(self) -> None:
        self.interrupts, self.terminated, self.stop = 0, False, threading.Event()
        self._running: set[Pulumi] = set()
        self._lock = threading.Lock()
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Take Ctrl-C and SIGTERM over, where this is the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._interrupt) for number in _SIGNALS}
        return self

    def __exit__(self, *_error: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # what signal.signal returned

    def run(self, what: str, tasks: Mapping[str, Task]) -> None:
        """Run tasks, until an interrupt; print the line that each one returns."""
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        with (
            progress_bar() as progress,
            ThreadPoolExecutor(AT_ONCE, thread_name_prefix="engine") as threads,
        ):
            bar = progress.add_task(f"{what} own stacks", total=len(tasks))
            waiting: set[Future[None]] = {threads.submit(self._one, task, lines) for task in tasks.values()}
            done = 0
            while waiting:
                ended, waiting = wait(waiting, timeout=_LOOK_SECONDS)
                for future in ended:
                    future.result()
                done += len(ended)
                progress.update(bar, completed=done)
                while not lines.empty():
                    if line := lines.get():
                        progress.console.print(f"  {line}  ({done} of {len(tasks)})", markup=False)

    def _one(self, task: Task, lines: queue.SimpleQueue[str]) -> None:
        pulumi = Pulumi(version=True)
        with self._lock:
            if self.interrupts:
                return
            self._running.add(pulumi)
        try:
            lines.put(task(pulumi))
        finally:
            with self._lock:
                self._running.discard(pulumi)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.terminated = self.terminated or (number == signal.SIGTERM and not self.interrupts)
        self.interrupts += 1
        self.stop.set()
        if self.interrupts == 1:
            os.write(2, b"interrupted: Pulumi finishes what it is doing; Ctrl-C again ends it at once\n")
        # The main thread may hold no lock here: a copy is enough, since no task begins any more.
        for pulumi in tuple(self._running):
            pulumi.interrupt()


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
