"""Ctrl-C, SIGTERM and SIGHUP: the exception that ends a verb, raised again where Python loses it.

Python runs a signal's handler between two instructions of the main thread, wherever that is. An
exception that is raised inside of `__del__` or a callback of C code is printed or dropped, and the
program goes on (https://docs.python.org/3/library/signal.html, "Note on Signal Handlers and
Exceptions").
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

INTERRUPTED = 130
TERMINATED = 143
HUNG_UP = 129

_AGAIN_SECONDS = 1.0
_CLEAN_UP_SECONDS = 8.0


class Terminated(SystemExit):
    """End after SIGTERM: what was begun is cleaned up, as after Ctrl-C."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


class HungUp(SystemExit):
    """End after SIGHUP, from a terminal that closes or an SSH client that ends its proxy."""

    def __init__(self) -> None:
        super().__init__(HUNG_UP)


_ENDS: dict[int, type[BaseException]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
    signal.SIGHUP: HungUp,
}


def raise_on_signals() -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP raise, each second again until the exception is on its way."""
    for number in _ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` and `&` ignore Ctrl-C for good
            signal.signal(number, _end)
    sys.unraisablehook = _without_ends


def _without_ends(lost: sys.UnraisableHookArgs) -> None:
    """Print an exception that Python loses, except an end: that comes again."""
    if not isinstance(lost.exc_value, tuple(_ENDS.values())):
        sys.__unraisablehook__(lost)


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Let a clean-up end before the first signal does; a second signal, or a long time, ends it.

    A clean-up that already follows a signal is ended by the next one.
    """
    in_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in _ENDS if in_main and signal.getsignal(number) is _end]
    if _on_its_way() or not numbers:
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            _end(number, frame)
        came.append(number)
        os.write(2, b"interrupted: cleaning up first; Ctrl-C again ends it at once\n")
        signal.signal(signal.SIGALRM, lambda *_: _end(number, frame))
        signal.setitimer(signal.ITIMER_REAL, _CLEAN_UP_SECONDS)

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
    """Let an end come out as it was raised.

    Before version 3.12, Python raises a RuntimeError for what comes while an import defines a class
    (https://docs.python.org/3.12/whatsnew/3.12.html, `__set_name__`).
    """
    try:
        yield
    except RuntimeError as error:
        cause = error.__cause__
        if cause and isinstance(cause, tuple(_ENDS.values())):
            raise cause from None
        raise


def leave_to_the_system() -> None:
    """Let a signal end the process at once, without a traceback: there is nothing left to do."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _ENDS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    end = _ENDS[number]

    def again(_signal: int, _frame: FrameType | None) -> None:
        if not _on_its_way():
            raise end

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, _AGAIN_SECONDS)
    raise end


def _on_its_way() -> bool:
    """Return whether a frame of the main thread handles an end: its clean-up is left alone."""
    error = sys.exc_info()[1]
    while error is not None:
        if isinstance(error, tuple(_ENDS.values())):
            return True
        error = error.__context__
    return False
