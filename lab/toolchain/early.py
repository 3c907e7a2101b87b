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
from typing import NoReturn

from berth.lab.errors import LabError
from berth.lab.home import ENVIRONMENT_VARIABLE, Home
from berth.lab.progress import Progress
from berth.lab.toolchain.ensure import ensure


class _Nowhere:
    """Console that nobody reads."""

    is_terminal = False

    def print(self, *_arguments: object, **_options: object) -> None:
        """Print nothing."""


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
    progress = Progress(_Nowhere())  # type: ignore[arg-type]
    with contextlib.suppress(LabError, OSError):
        ensure(Home(Path(os.environ.get(ENVIRONMENT_VARIABLE) or ".lab").absolute()), progress)


if __name__ == "__main__":
    main()
