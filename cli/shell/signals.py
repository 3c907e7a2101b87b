"""Ctrl-C, SIGTERM and SIGHUP: exceptions that end a verb, whose clean-up runs to its end."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

INTERRUPTED = 130
TERMINATED = 128 + signal.SIGTERM


class Ended(SystemExit):
    """End after SIGTERM, or SIGHUP: a terminal closes, or an SSH client ends its proxy.

    What was begun is cleaned up, as after Ctrl-C.
    """


_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ENDS = (KeyboardInterrupt, Ended)


def raise_on_signals() -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP raise."""
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` and `&` ignore Ctrl-C for good
            signal.signal(number, _end)


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Let a clean-up end first when a signal comes; a second signal ends it at once.

    A clean-up that already follows a signal is ended by the next one.
    """
    if isinstance(sys.exc_info()[1], _ENDS):
        yield
        return
    in_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in _NUMBERS if in_main and signal.getsignal(number) is _end]
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            _end(number, frame)
        came.append(number)
        os.write(2, b"interrupted: cleaning up first; Ctrl-C again ends it at once\n")

    for number in numbers:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, _end)
    if came:
        _end(came[0], None)


@contextlib.contextmanager
def unwrapped() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM come out of a block as they were raised.

    Before version 3.12, Python raises a RuntimeError for what comes while an import defines a class
    (https://docs.python.org/3.12/whatsnew/3.12.html, `__set_name__`).

    Raises:
        KeyboardInterrupt: Ctrl-C.
        Ended: SIGTERM or SIGHUP.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__cause__, _ENDS):
            raise error.__cause__ from None
        raise


def leave_to_the_system() -> None:
    """Let a signal end the process at once, without a traceback: there is nothing left to do."""
    for number in _NUMBERS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt if number == signal.SIGINT else Ended(128 + number)
