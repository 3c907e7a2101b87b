"""Result of a proof: its counts of verdicts, and how it is printed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from rich.console import Group
from rich.text import Text

from berth.cli.shell.console import print_result
from berth.cli.shell.table import Table
from berth.components.core.errors import FAILED
from berth.components.proof import Check, Verdict

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_STYLES: dict[Verdict, str] = {
    "pass": "green",
    "fail": "bold red",
    "simulated": "cyan",
    "skipped": "dim",
}


def counts_of(checks: Iterable[Check]) -> dict[Verdict, int]:
    """Return the number of checks by verdict."""
    counted = Counter(check.verdict for check in checks)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def print_proof(
    document: Mapping[str, Any], shown: Iterable[Table | Text], *, as_json: bool
) -> int:
    """Print a proof, with its `counts` in the last line; return the exit code."""
    counts = Text(", ".join(f"{count} {verdict}" for verdict, count in document["counts"].items()))
    print_result(document, Group(*shown, counts), as_json=as_json)
    return FAILED if document["counts"]["fail"] else 0


def verdict_text(verdict: Verdict) -> Text:
    """Return a verdict for people."""
    return Text(verdict, style=_STYLES[verdict])
