"""Summary of an update, for people and for programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from berth.cli.pulumi.interrupts import Interrupts
from berth.cli.pulumi.preview.document import plain_data
from berth.cli.pulumi.update.question import Options, Verb
from berth.cli.pulumi.update.score import Score
from berth.cli.pulumi.update.tracker import WORDS, Tracker
from berth.cli.shell.console import err, out, print_json
from berth.components.cluster.conflicts import conflict_advice
from berth.components.core.errors import FAILED
from berth.components.core.words import counted, first_names
from berth.components.gke.errors.advice import unfinished_deletion

_LISTS = ("berths", "clusters", "jobs", "services")
"""Outputs of an environment that have names (stacks/program/environment.py)."""
_DONE: dict[Verb, str] = {"up": "is up", "destroy": "is down"}


@dataclass(frozen=True)
class Result:
    """Result of an update."""

    stack: str
    verb: Verb
    tracker: Tracker
    seconds: float
    options: Options
    more: Mapping[str, Any]
    """Fields of the document for programs."""
    word: str = "succeeded"
    """Result in a word, where nothing failed."""

    def document(self, result: str, **content: Any) -> dict[str, Any]:
        """Return the result for programs."""
        return {
            "stack": self.stack,
            "verb": self.verb,
            "result": result,
            "seconds": round(self.seconds, 1),
            "changes": self.tracker.counts,
            **self.more,
            **content,
        }


def print_success(result: Result, score: Score | None = None) -> int:
    """Print what was done, whether the plan was right, and what comes next; return the code."""
    outputs = result.tracker.outputs if result.verb == "up" else {}
    if result.options.as_json:
        document = result.document(
            result.word, components=_components(result), outputs=outputs, plan=plain_data(score)
        )
        print_json(document)
        return 0
    counts = [f"{count} {WORDS[operation]}" for operation, count in result.tracker.counts.items()]
    done = ", ".join(counts) or "nothing to do"
    text = f" {result.stack} {_DONE[result.verb]}: {done}, {result.seconds:.0f} s"
    out.print(Text.assemble(("✓", "green"), text))
    if score:
        _print_score(score)
    for name, value in outputs.items():
        if value:
            shown = first_names(value.split(", ")) if name in _LISTS else value
            out.print(f"  {name}: {shown}")
    for command, meaning in _next_commands(result, outputs):
        out.print(f"  [bold]{command:<30}[/] {meaning}", markup=True)
    return 0


def _components(result: Result) -> list[dict[str, Any]]:
    """Return the components of an update for programs."""
    return [
        {
            "title": component.title,
            "done": len(component.done),
            "seconds": round(component.seconds, 1),
        }
        for component in result.tracker.components.values()
    ]


def _print_score(score: Score) -> None:
    """Print whether a plan was right about RayClusters."""
    if wrong := str(score):
        err.print(f"the plan was wrong: {wrong}")
    elif score.right:
        waiting = f"; {', '.join(score.waiting)} still without room" if score.waiting else ""
        out.print(f"  as planned for {counted(score.right, 'RayCluster')}{waiting}")


def _next_commands(result: Result, outputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield commands that come next, each with its meaning."""
    stack = result.stack
    if result.verb == "destroy":
        yield (
            f"pulumi stack rm {stack} --preserve-config",
            "deletes the stack too, but not its file",
        )
    elif name := outputs.get("rayCluster"):
        yield f"berth connect {name}", "dashboard and client here, a line to submit a job"
        yield f"berth status -s {stack}", "state"
    else:
        yield f"berth status -s {stack}", "pools and berths"
        if berth := str(outputs.get("berths") or "").split(", ")[0]:
            yield f"berth connect {berth}", "an engineer's dashboard and client here"


def print_failure(result: Result, error: str, interrupts: Interrupts) -> int:
    """Print the errors of an update that failed or was interrupted; return the exit code."""
    stack = result.stack
    verb = result.verb
    interrupted = interrupts.count > 0
    # An engine that is interrupted early ends without a word of its own.
    errors = result.tracker.errors or ([] if interrupted else [error])
    for text in errors:
        err.print(Text.assemble(("error: ", "bold red"), text))
        # In an update, the pool's own hook says the second (components/gke/errors/hook.py).
        unfinished = unfinished_deletion(text) if verb == "destroy" else ()
        for line in [*conflict_advice(text, stack), *unfinished]:
            err.print(f"  {line}")
    if interrupted:
        err.print(f"stack {stack} was interrupted; Pulumi's state has what was done")
        err.print(f"go on with: berth {verb} -s {stack}")
    if interrupted and verb == "destroy":
        # The cluster goes on with deletions that the engine no longer waits for, and the state
        # still has those objects.
        err.print(
            f"or bring it back with: pulumi refresh -s {stack} --yes --clear-pending-creates, then"
            f" berth up -s {stack}"
        )
    if result.options.as_json:
        print_json(result.document("interrupted" if interrupted else "failed", errors=errors))
    return interrupts.code if interrupted else FAILED
