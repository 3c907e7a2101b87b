"""`berth exec`."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import OnStack, RequiredName, Worker


def run(
    name: RequiredName,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="The command, after --. Default: bash."),
    ] = None,
    stack: OnStack = None,
    worker: Worker = None,
) -> int:
    """Run a command in the head's container, or in a worker's, at this terminal.

    Ray does not know of the command and reserves nothing for it; `berth submit` runs jobs. While it
    runs, the keeper does not suspend the berth for idleness.

    Exit code of the command; 0 if it succeeds, 1 if the pod is not ready or the cluster cannot be
    asked, 2 for a wrong name or worker.

    Example: `berth exec alice --worker 1 -- nvidia-smi`
    """
    import sys

    from berth.cli.reach.berths import live_berth
    from berth.cli.reach.logins import run_attached

    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return run_attached(live_berth(name, stack), worker, command or ["bash"], terminal=terminal)
