"""Early begin of the tools: `make` runs this module while pip installs the packages.

It fetches and builds what it can with the standard library alone, in silence, until it is ended.
What it has finished is in the cache; what it has compiled is in Go's cache. `berth lab up` goes on
from there, and reports what fails.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from berth.lab.errors import LabError
from berth.lab.home import ENVIRONMENT_VARIABLE, Home
from berth.lab.progress import Progress, Step
from berth.lab.toolchain.ensure import ensure

if TYPE_CHECKING:
    from collections.abc import Iterator


class Silent(Progress):
    """Progress that nobody reads."""

    def __init__(self) -> None:
        pass

    def say(self, text: str) -> None:
        """Print nothing."""

    def done(self, what: str, note: str) -> None:
        """Print nothing."""

    @contextlib.contextmanager
    def step(self, doing: str, done: str) -> Iterator[Step]:
        """Report nothing."""
        del doing
        yield Step(done)


def _end(*_: object) -> NoReturn:
    sys.exit(1)


def _end_with(parent: int) -> None:
    """End this program when its parent ends: a shell's background ignores Ctrl-C."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Make the lab's tools until a signal says that `berth lab up` goes on with them."""
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with contextlib.suppress(LabError, OSError):
        ensure(Home(Path(os.environ.get(ENVIRONMENT_VARIABLE) or ".lab").absolute()), Silent())


if __name__ == "__main__":
    main()
