"""Parts that the GPU proof and the fabric proof share: clean-up, counts of verdicts, tables."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, get_args

from rich.text import Text

from berth.cli.shell.console import err
from berth.cli.shell.signals import put_off
from berth.components.cluster.api import ClusterError
from berth.components.proof import RUN_LABEL, Verdict

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_STYLES: dict[Verdict, str] = {"pass": "green", "fail": "bold red", "simulated": "cyan", "skipped": "dim"}


class Run(Protocol):
    """A proof's run, which creates objects in the cluster."""

    run: str

    def clean_up(self) -> str | None:
        """Delete the objects; return what is left and why."""


@contextlib.contextmanager
def cleaned_up(run: Run, namespace: str, kinds: str, *removals: str, keep: bool) -> Iterator[None]:
    """Delete a run's objects at the end; print how to do it by hand if that fails.

    Args:
        run: the run.
        namespace: namespace of its objects.
        kinds: kinds of its objects, to list them.
        removals: commands that delete them, without the selector.
        keep: leave the objects, and print how to list and delete them.
    """
    selector = f"-l {RUN_LABEL}={run.run}"
    remove = "\n        ".join(f"{command} {selector}" for command in removals)
    try:
        yield
    finally:
        if keep:
            look = f"kubectl get {kinds},pods -n {namespace} {selector}"
            err.print(f"kept, with label {RUN_LABEL}={run.run}\nlook: {look}\nremove: {remove}", markup=False)
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
        err.print(f"objects of run {run.run} may be left\n{remove}", markup=False)
        raise
    if left:
        err.print(left, markup=False)


def counts_of(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return the number of checks by verdict."""
    counted = Counter(verdicts)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def verdict_text(verdict: Verdict) -> Text:
    """Return a verdict for people."""
    return Text(verdict, style=_STYLES[verdict])


def counts_text(counts: Mapping[str, int]) -> Text:
    """Return the last line of a proof's table."""
    return Text(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
