"""Progress of an update: a live table on a terminal, elsewhere a line a component."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Self

from pulumi.automation import EngineEvent
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from berth.cli.shell.console import err
from berth.cli.update.tracker import Component, Tracker

_REFRESHES = 8


def progress_bar() -> Bar:
    """Return a bar that counts tasks on a terminal and disappears at its end; elsewhere nothing."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Bar(*columns, console=err, transient=True, disable=not err.is_terminal)


class Progress:
    """Display of a tracker's components while a `with` block runs."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._spinner = Spinner("dots")
        self._live = Live(self, console=err, refresh_per_second=_REFRESHES) if err.is_terminal else None
        self._printed: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Start the display."""
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """End the display; its last picture stays."""
        if self._live:
            self._live.stop()

    def see(self, event: EngineEvent) -> None:
        """Take an event in, and show what it changes."""
        completed = self._tracker.see(event)
        if self._live:
            return
        for component in completed:
            err.print(line(component))
        self._print_waiting()

    def note(self, name: str, text: str) -> None:
        """Show the state of a resource that the update waits for."""
        self._tracker.waiting[name] = text
        self._print_waiting()

    def fail(self, name: str, error: str) -> None:
        """Take an error of a resource in."""
        self._tracker.fail(name, error)

    def warn(self, text: str) -> None:
        """Take a warning in, which is printed at the end."""
        self._tracker.warnings.append(text)

    def _print_waiting(self) -> None:
        if self._live:
            return
        for name, text in list(self._tracker.waiting.items()):
            if self._printed.get(name) != text:
                self._printed[name] = text
                err.print(f"  … {name}: {text}", markup=False)

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        """Yield the present table."""
        yield Group(*self._rows())

    def _rows(self) -> Iterator[Table | Text]:
        grid = Table.grid(padding=(0, 1))
        for _ in range(4):
            grid.add_column(overflow="fold")
        for component in self._tracker.components.values():
            if component.complete or component.failed or component.began is None:
                grid.add_row(_sign(component), *_cells(component))
            else:
                grid.add_row(self._spinner, *_cells(component))
        yield grid
        done = all(component.complete for component in self._tracker.components.values())
        if done and self._tracker.waiting:
            for name, text in self._tracker.waiting.items():
                yield Text(f"… {name}: {text}", style="dim")


def line(component: Component) -> Text:
    """Return a component as a line: `✓ KubeRay operator  2 created  12 s`."""
    return Text("  ").join([Text.assemble("  ", _sign(component), " ", component.title), *_cells(component)[1:]])


def _sign(component: Component) -> Text:
    if component.failed:
        return Text("✗", style="bold red")
    if component.complete:
        return Text("✓", style="green")
    return Text("·", style="dim")


def _cells(component: Component) -> list[Text]:
    counts: dict[str, int] = {}
    for done in component.done.values():
        counts[done] = counts.get(done, 0) + 1
    if component.complete:
        what = ", ".join(f"{count} {done}" for done, count in counts.items())
    else:
        what = f"{len(component.done)} of {component.planned}"
    now = component.ended if component.complete or component.failed else time.monotonic()
    seconds = "" if component.began is None or now is None else f"{now - component.began:.0f} s"
    return [Text(component.title), Text(what, style="dim"), Text(seconds, style="dim")]
