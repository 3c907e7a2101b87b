"""Shell at a terminal, which runs a page's blocks as a reader types them."""

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.pages.page import Block

DEADLINE_SECONDS = 1200.0
SHOWN = 6000
_SIZE = struct.pack("HHHH", 50, 120, 0, 0)
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?]*[a-zA-Z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])|\r"
)
_CTRL_C = b"\x03"
_END = "\x1e"
_POLL_SECONDS = 0.1


class BlockError(AssertionError):
    """A block did not do what its page says."""


@dataclass(frozen=True)
class Ran:
    """Run of a block: what the terminal showed, and the seconds that it took."""

    output: str
    seconds: float


def script(block: Block) -> str:
    """Return the lines of bash that run a block and check the exit codes of its commands."""
    if not block.marks.exits and not block.marks.stop_after:
        return f"set -e\n{block.text}\nset +e\n"
    # Ctrl-C ends the command and not the shell, which has a trap for it.
    codes = f"{block.marks.exits}|130" if block.marks.stop_after else f"{block.marks.exits}"
    return "".join(
        f'{command}\ncase $? in {codes}) ;; *) echo "exit code $?, not {codes}"; exit 97 ;; esac\n'
        for command in block.commands
    )


class Shell:
    """bash with a terminal, in a folder: variables and the folder stay from block to block."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._terminal, self._other = os.openpty()
        fcntl.ioctl(self._other, termios.TIOCSWINSZ, _SIZE)
        lines, self._lines = os.pipe()
        name = os.ttyname(self._other)
        # A session's first process gets the first terminal that it opens, and with it Ctrl-C.
        start = f"exec <{name} >{name} 2>&1; exec bash --noprofile --norc /dev/fd/{lines}"
        self._process = subprocess.Popen(
            ["bash", "-c", start],
            cwd=folder,
            env={**environment, "TERM": "xterm"},
            pass_fds=[lines],
            start_new_session=True,
        )
        os.close(lines)
        self._write(f"exec {lines}<&-\ntrap : INT\n")

    def run(self, block: Block, seconds: float = DEADLINE_SECONDS) -> Ran:
        """Run a block; answer its prompts.

        Raises:
            BlockError: a command failed, a prompt did not appear, or the time is up.
        """
        began = time.monotonic()
        output = ""
        seen = 0
        answers = list(block.marks.answers)
        stop_after = block.marks.stop_after
        self._write(f"{script(block)}printf '\\036'\n")
        while not output.endswith(_END):
            if time.monotonic() > began + seconds:
                raise BlockError(f"{block} did not end within {seconds:.0f} s:\n{output[-SHOWN:]}")
            text = self._read()
            if text is None:
                raise BlockError(f"{block} failed:\n{block.text}\n{output[-SHOWN:]}")
            output += text
            # getpass turns the echo off before a prompt's last space; what was typed before that is
            # lost.
            if answers and answers[0][0] in output[seen:] and output.endswith(" "):
                seen = len(output)
                os.write(self._terminal, f"{answers.pop(0)[1]}\n".encode())
            elif stop_after and stop_after in output:
                stop_after = ""
                os.write(self._terminal, _CTRL_C)
        if answers or stop_after:
            raise BlockError(f"{block} did not show {answers or stop_after!r}:\n{output[-SHOWN:]}")
        return Ran(output.removesuffix(_END), time.monotonic() - began)

    def close(self) -> None:
        """End the shell."""
        os.close(self._lines)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)
        os.close(self._other)

    def _write(self, text: str) -> None:
        os.write(self._lines, text.encode())

    def _read(self) -> str | None:
        """Return what the terminal shows next, perhaps nothing; None if the shell is gone."""
        ended = self._process.poll() is not None
        if select.select([self._terminal], [], [], 0.0 if ended else _POLL_SECONDS)[0]:
            return _ESCAPES.sub("", os.read(self._terminal, 65536).decode(errors="replace"))
        return None if ended else ""


@contextlib.contextmanager
def opened(folder: Path, environment: Mapping[str, str]) -> Iterator[Shell]:
    """Shell that is ended in the end."""
    shell = Shell(folder, environment)
    try:
        yield shell
    finally:
        shell.close()
