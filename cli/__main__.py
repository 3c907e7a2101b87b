"""Start of the `berth` command: streams and signals, before the first import that takes time."""

import os
import signal
import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command. Until it runs, Ctrl-C ends the process at once: nothing has begun."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # `nohup` and `&` ignore it for good
        signal.signal(signal.SIGINT, _interrupted)
    _make_writable()
    from berth.cli import main as command  # noqa: PLC0415 - takes a quarter of a second

    command.main()


def _make_writable() -> None:
    """Lead a closed stream nowhere, and escape characters that an encoding lacks."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - open until the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - the same
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _interrupted(_signal: int, _frame: object) -> None:
    """End at once; an exception inside of an import would be printed or lost."""
    if sys.stderr is not None:
        os.write(2, b"interrupted\n")
    os._exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
