"""Ctrl-C and SIGTERM while Pulumi runs."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Self

from berth.cli.shell.signals import INTERRUPTED, TERMINATED


class Interrupts:
    """Interrupts of a command: the engine ends in good order, and then the command.

    The terminal itself sends Ctrl-C to Pulumi, which is in berth's own process group. What reaches
    only berth is passed on: SIGTERM, and SIGINT without a terminal. The first one cancels a run,
    and the second one ends it at once.
    """

    def __init__(self) -> None:
        self.count = 0
        self.code = INTERRUPTED
        self.running: set[subprocess.Popen[str]] = set()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as for `nohup` and `&`
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def end_if_interrupted(self) -> None:
        """End the command, if there was an interrupt.

        Raises:
            KeyboardInterrupt: it was Ctrl-C.
            SystemExit: it was SIGTERM.
        """
        if self.count:
            raise KeyboardInterrupt if self.code == INTERRUPTED else SystemExit(self.code)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM and not self.count:
            self.code = TERMINATED
        self.count += 1
        if number == signal.SIGTERM or not _in_foreground():
            for process in tuple(self.running):
                process.send_signal(signal.SIGINT)


def _in_foreground() -> bool:
    """Return whether the terminal sends Ctrl-C to this process group, with Pulumi in it."""
    with suppress(OSError), Path("/dev/tty").open("rb", buffering=0) as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False
