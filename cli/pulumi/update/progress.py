"""Progress of an update: a bar for each component on a terminal, elsewhere a line."""

from collections import Counter

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
    """Display of a tracker's components: `bars`, for a `with` block; the last picture stays."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        columns = (
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            MofNCompleteColumn(),
        )
        self.bars = Bars(*columns, TimeElapsedColumn(), console=err, disable=not err.is_terminal)
        self._tasks = {
            title: self.bars.add_task(title, start=False, total=component.planned)
            for title, component in tracker.components.items()
        }
        self._printed: dict[str, str] = {}

    def see(self, event: Event) -> None:
        """Take an event in, and show what it changes."""
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
            self.bars.start_task(task)
            title = f"[bold red]✗ {component.title}[/]" if component.failed else component.title
            self.bars.update(task, completed=len(component.done), description=title)
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
