"""Progress lines of long work: one line a step, with a running clock on a terminal."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.progress import Progress as Bar


def duration(seconds: float) -> str:
    """Return seconds as a person reads them: `0.4 s`, `34 s`, `2 min 50 s`."""
    if seconds < 10:  # noqa: PLR2004 - below ten seconds, tenths matter
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _console() -> Console:
    # The tools are built while the packages, this one too, are still being installed.
    from rich.console import Console  # noqa: PLC0415

    return Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass
class Step:
    """Step in progress; `done` is the line that reports its end."""

    done: str


class Several:
    """Parts of one step; a bar on a terminal shows their sum, and the time that is left."""

    def __init__(self, progress: Progress, total: int, bar: Bar | None) -> None:
        self._progress, self._bar, self.parts = progress, bar, 0
        self._task = bar.add_task("", total=total) if bar else None

    @contextlib.contextmanager
    def part(self, name: str, size: int) -> Iterator[None]:
        """Show a part of some MiB while it is made."""
        if self._bar is None or self._task is None:
            self._progress.say(f"  … {name}")
            yield
        else:
            self._bar.update(self._task, description=name)
            yield
            self._bar.advance(self._task, size)
        self.parts += 1


class Progress:
    """Lines about work, written to stderr so that stdout stays usable by other programs."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or _console()

    def say(self, text: str) -> None:
        """Print one plain line."""
        self.console.print(text, markup=False)

    def done(self, what: str, note: str) -> None:
        """Report a part of the work that is done, with a note in parentheses."""
        self.console.print(f"  [green]✓[/green] {what} [dim]({note})[/dim]")

    @contextlib.contextmanager
    def several(self, done: str, total: int) -> Iterator[Several]:
        """Report the parts of a step, in a bar on a terminal, a line each elsewhere.

        Args:
            done: what was done, for the line at the end.
            total: MiB of all parts.
        """
        begin = time.monotonic()
        if self.console.is_terminal:
            from rich import progress as rich  # noqa: PLC0415 - only on terminals; it takes a while to load

            size = rich.TextColumn("{task.completed:.0f} of {task.total:.0f} MiB, left")
            texts = (rich.TextColumn("  {task.description}"), rich.BarColumn(), size)
            with rich.Progress(*texts, rich.TimeRemainingColumn(), console=self.console, transient=True) as bar:
                several = Several(self, total, bar)
                yield several
        else:
            several = Several(self, total, None)
            yield several
        if several.parts:
            self.done(f"{done}, {total} MiB", duration(time.monotonic() - begin))

    @contextlib.contextmanager
    def step(self, doing: str, done: str) -> Iterator[Step]:
        """Report a step: a spinner that becomes the final line on a terminal, two lines elsewhere.

        A step that fails leaves no final line: the error says what happened.

        Args:
            doing: what is being done, for the line until the end.
            done: what was done; the block may replace it in the yielded step.
        """
        step = Step(done)
        begin = time.monotonic()
        if self.console.is_terminal:
            from rich.progress import Progress as Bar  # noqa: PLC0415 - only on terminals; it takes a while to load
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

            columns = (TextColumn(" "), SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            with Bar(*columns, console=self.console, transient=True) as bar:
                bar.add_task(doing, total=None)
                yield step
        else:
            self.say(f"  … {doing}")
            yield step
        self.done(step.done, duration(time.monotonic() - begin))
