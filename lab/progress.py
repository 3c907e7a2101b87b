"""Progress lines of long work: one line a step, with a running clock on a terminal."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console


def duration(seconds: float) -> str:
    """Return seconds as a person reads them: `0.4 s`, `34 s`, `2 min 50 s`."""
    if seconds < 10:  # noqa: PLR2004 - below ten seconds, tenths matter
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@dataclass
class ProgressStep:
    """Step in progress."""

    done: str
    """Line that reports the end; "" for none."""
    show: Callable[[str], None]
    """Shows which part is being done."""


class LabProgress:
    """Lines about work, written to stderr so that stdout stays usable by other programs."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Print one plain line."""
        self.console.print(text, markup=False)

    def done(self, what: str, note: str) -> None:
        """Report a part of the work that is done, with a note in parentheses."""
        self.console.print(f"  [green]✓[/green] {what} [dim]({note})[/dim]")

    @contextlib.contextmanager
    def step(self, doing: str, done: str) -> Iterator[ProgressStep]:
        """Report a step: a spinner that becomes the final line on a terminal, two lines elsewhere.

        A step that fails leaves no final line: the error says what happened.

        Args:
            doing: what is being done, for the line until the end.
            done: what was done; the block may replace it in the yielded step.
        """
        step = ProgressStep(done, lambda part: self.say(f"  … {part}"))
        begin = time.monotonic()
        if self.console.is_terminal:
            # It takes a while to load, and only terminals need it.
            from rich.progress import Progress as Bar  # noqa: PLC0415
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

            columns = (
                TextColumn(" "),
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
            )
            with Bar(*columns, console=self.console, transient=True) as bar:
                task = bar.add_task(doing, total=None)
                step.show = lambda part: bar.update(task, description=part)
                yield step
        else:
            if doing:
                step.show(doing)
            yield step
        if step.done:
            self.done(step.done, duration(time.monotonic() - begin))
