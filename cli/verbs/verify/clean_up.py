"""Clean-up after a proof: a run's objects, and how to delete them by hand."""

import contextlib
from collections.abc import Iterator

from berth.cli.shell.console import err
from berth.cli.shell.signals import put_off
from berth.components.cluster.api import ClusterError
from berth.components.proof import RUN_LABEL, Run


@contextlib.contextmanager
def cleaned_up(run: Run, namespace: str, kinds: str, *removals: str, keep: bool) -> Iterator[None]:
    """Delete a run's objects at the end; print how to do it by hand if that fails.

    Args:
        run: the run.
        namespace: namespace of the objects.
        kinds: kinds of the objects, for `kubectl get`.
        removals: commands that delete the objects, without the selector.
        keep: whether the objects stay.
    """
    selector = f"-l {RUN_LABEL}={run.run}"
    remove = "\n        ".join(f"{command} {selector}" for command in removals)
    try:
        yield
    finally:
        if keep:
            err.print(
                f"kept, with label {RUN_LABEL}={run.run}\n"
                f"look: kubectl get {kinds},pods -n {namespace} {selector}\n"
                f"remove: {remove}"
            )
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
