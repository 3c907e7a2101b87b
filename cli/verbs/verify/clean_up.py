"""Parts that the GPU proof and the fabric proof share: clean-up, and the result as shown."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from rich.console import Group
from rich.text import Text

from berth.cli.shell.console import Table, err, print_result
from berth.cli.shell.signals import put_off
from berth.components.cluster.api import ClusterError
from berth.components.core.errors import FAILED
from berth.components.proof import RUN_LABEL, Check, Run, Verdict

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


@contextlib.contextmanager
def cleaned_up(run: Run, namespace: str, kinds: str, *removals: str, keep: bool) -> Iterator[None]:
    """Delete a run's objects at the end; print how to do it by hand if that fails.

    `removals` are the commands that delete them, without the selector. With `keep`, the objects
    stay.
    """
    selector = f"-l {RUN_LABEL}={run.run}"
    remove = "\n        ".join(f"{command} {selector}" for command in removals)
    try:
        yield
    finally:
        if keep:
            look = f"kubectl get {kinds},pods -n {namespace} {selector}"
            err.print(f"kept, with label {RUN_LABEL}={run.run}\nlook: {look}\nremove: {remove}")
        else:
            with put_off():
                _clean_up(run, f"remove: {remove}")


def _clean_up(run: Run, remove: str) -> None:
    """Delete a run's objects without hiding an earlier error."""
    try:
        left = run.clean_up() or ""
    except ClusterError as error:
        left = f"the objects of run {run.run} could not be deleted: {error}\n{remove}"
    except (KeyboardInterrupt, SystemExit):
        err.print(f"objects of run {run.run} may be left\n{remove}")
        raise
    if left:
        err.print(left)


def verdict_text(verdict: Verdict) -> Text:
    """Return a verdict for people."""
    return Text(verdict, style=_STYLES[verdict])
