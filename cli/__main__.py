"""Start of the `berth` command: streams and signals, before the first import that takes time."""

from __future__ import annotations

import gc
import os
import signal
import sys

INTERRUPTED = 130
_OBJECTS = 50_000
"""New objects after which Python looks for garbage. With its default of 700, imports and models of
100 berths make it look thousands of times, and find none: 6 % of an update without changes."""


def main() -> None:
    """Run the command. Until it runs, Ctrl-C ends the process at once: nothing has begun."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # `nohup` and `&` ignore it for good
        signal.signal(signal.SIGINT, _interrupted)
    from berth.cli import streams  # noqa: PLC0415 - a signal handler comes first

    streams.prepare()
    gc.set_threshold(_OBJECTS)
    from berth.cli import main as command  # noqa: PLC0415 - takes a quarter of a second

    command.main()


def _interrupted(_signal: int, _frame: object) -> None:
    """End at once; an exception inside of an import would be printed or lost."""
    if sys.stderr is not None:
        os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
