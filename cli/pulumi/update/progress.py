"""Progress of an update: a bar for each component on a terminal, elsewhere a line."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from berth.cli.pulumi.update.tracker import WORDS, Component, Tracker
from berth.cli.shell.console import err
from berth.components.plan.plan import Event

_LOOK_SECONDS = 10.0
"""Time between two looks at what takes long."""


def progress_bar() -> Bars:
    """Return a bar that counts tasks on a terminal and disappears at its end; elsewhere nothing."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Bars(*columns, console=err, transient=True, disable=not err.is_terminal)


class Progress:
    """Display of a tracker's components: `shown`, a `with` block; the last picture stays."""

    def __init__(self, tracker: Tracker, command: str) -> None:
        """Prepare the display.

        Args:
            tracker: the state of the update.
            command: command that goes on after an interrupt.
        """
        self._tracker = tracker
        self._command = command
        self._lock = threading.Lock()
        columns = (
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            MofNCompleteColumn(),
        )
        self._bars = Bars(*columns, TimeElapsedColumn(), console=err, disable=not err.is_terminal)
        self._tasks = {
            title: self._bars.add_task(title, start=False, total=component.planned)
            for title, component in tracker.components.items()
        }
        self._printed: dict[str, str] = {}

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bars, and from time to time what takes long, while a block runs."""
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(_LOOK_SECONDS):
                self.show_what_takes_long()

        looking = threading.Thread(target=look, daemon=True)
        with self._bars:
            looking.start()
            try:
                yield
            finally:
                ended.set()
                looking.join()

    def show_what_takes_long(self) -> None:
        """Print a line for each step that takes long, and how to stop."""
        with self._lock:
            lines = self._tracker.slow.due()
            for line in lines:
                err.print(f"  … {line}", markup=False)
            if lines and not self._printed.get("how to stop"):
                self._printed["how to stop"] = "said"
                err.print(
                    "  … Ctrl-C begins nothing more and waits for these; a second Ctrl-C ends the"
                    f" update at once; then go on with: {self._command}",
                    markup=False,
                )

    def see(self, event: Event) -> None:
        """Take an event in, and show what it changes."""
        with self._lock:
            self._see(event)

    def _see(self, event: Event) -> None:
        if component := self._tracker.see(event):
            self._show(component)
        if "stdoutEvent" in event:  # Pulumi's own words to an interrupt
            err.print(event["stdoutEvent"]["message"].strip())
        for name, text in self._tracker.waiting.items():
            if self._printed.get(name) != text:
                self._printed[name] = text
                err.print(f"  … {name}: {text}")

    def _show(self, component: Component) -> None:
        if (task := self._tasks.get(component.title)) is not None and err.is_terminal:
            self._bars.start_task(task)
            title = f"[bold red]✗ {component.title}[/]" if component.failed else component.title
            self._bars.update(task, completed=len(component.done), description=title)
        elif component.complete and self._printed.get(component.title) != "complete":
            self._printed[component.title] = "complete"
            err.print(_line(component))


def _line(component: Component) -> Text:
    """Return a complete component as a line: `✓ KubeRay operator  2 created  12 s`."""
    what = ", ".join(
        f"{count} {WORDS[done]}" for done, count in Counter(component.done.values()).items()
    )
    sign = Text.assemble("  ", ("✓", "green"), f" {component.title}")
    return Text("  ").join(
        [sign, Text(what, style="dim"), Text(f"{component.seconds:.0f} s", style="dim")]
    )
