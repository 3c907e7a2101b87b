"""The verbs of an engineer's and an admin's day: arguments, help and exit codes. What they do stands in files of their own."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from berth.cli.console import BAD_INPUT, fail

FAILED = 1
TERMINATED = 143


def complete_names(incomplete: str) -> list[str]:
    """Engineers and clusters, for the shell."""
    from berth.cli.berths import names  # noqa: PLC0415

    return names(incomplete)


def complete_stacks(incomplete: str) -> list[str]:
    """Stacks, for the shell."""
    from berth.cli.berths import stacks  # noqa: PLC0415

    return stacks(incomplete)


Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="The engineer's id, or the cluster's name.", autocompletion=complete_names),
]
OnStack = Annotated[
    str | None,
    typer.Option(
        "--stack",
        "-s",
        help="Stack of the environment, or the engineer's own.",
        show_default="the one that has NAME",
        autocompletion=complete_stacks,
    ),
]
Stack = Annotated[
    str,
    typer.Option("--stack", "-s", help="Stack of an environment, or an engineer's.", autocompletion=complete_stacks),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Timeout = Annotated[str, typer.Option(help="How long to wait until it is done.", metavar="DURATION")]


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Errors as sentences and exit codes; SIGTERM ends as Ctrl-C does, what was begun cleaned up.

    Raises:
        Exit: with 2 where the input is wrong, with 1 for what can't be asked or done.
    """
    from berth.cli.berths import BadInputError  # noqa: PLC0415 - the kubernetes client takes a while to import
    from berth.cli.environment import NoSuchStackError, NotUpError, StatusError  # noqa: PLC0415
    from berth.cli.kubectl import KubectlError  # noqa: PLC0415
    from berth.cli.preview.engine import EngineError, UnknownStackError  # noqa: PLC0415
    from berth.components.cluster.api import ClusterError  # noqa: PLC0415
    from berth.stacks.load import SettingsError  # noqa: PLC0415

    signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    except (BadInputError, NoSuchStackError, NotUpError, UnknownStackError, SettingsError) as error:
        fail(str(error), BAD_INPUT)
    except BrokenPipeError:
        raise  # the reader has what it wanted
    except (StatusError, ClusterError, KubectlError, EngineError, OSError) as error:
        fail(str(error), FAILED)


def _terminated(_signal: int, _frame: object) -> NoReturn:
    """As Ctrl-C: clean up, then end."""
    raise SystemExit(TERMINATED)


def _check_duration(timeout: str) -> None:
    """Refuse what is no duration.

    Raises:
        BadInputError: it is none.
    """
    from berth.cli.berths import BadInputError  # noqa: PLC0415
    from berth.components.core.types import parse_duration  # noqa: PLC0415

    try:
        parse_duration(timeout)
    except ValueError as error:
        raise BadInputError(f"--timeout: {error}") from None


def suspend(
    name: Name = None,
    stack: OnStack = None,
    timeout: Timeout = "5m",
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it though something runs; that is lost.")] = False,
    as_json: Json = False,
) -> None:
    """Take a berth's pods away and keep its settings: its GPUs are free for others. `berth wake` brings it back.

    Asks before it ends what runs, by Ray's own list of jobs and attached sessions. Pulumi sees none of it as drift, and leaves it
    as it is. Exit code 0 if it is suspended, 1 if it is not in time or can't be asked, 2 for a wrong name, 3 if something would be
    lost and nobody agreed to it.
    """
    with plain_errors():
        from berth.cli import suspension as verb  # noqa: PLC0415

        _check_duration(timeout)
        raise typer.Exit(verb.suspend(name, stack, timeout, yes=yes, as_json=as_json))


def wake(name: Name = None, stack: OnStack = None, timeout: Timeout = "10m", *, as_json: Json = False) -> None:
    """Bring a suspended berth back, and wait until it is ready.

    Exit code 0 if it is ready, 1 if it is not in time (with the reasons) or can't be asked, 2 for a wrong name.
    """
    with plain_errors():
        from berth.cli import suspension as verb  # noqa: PLC0415

        _check_duration(timeout)
        raise typer.Exit(verb.wake(name, stack, timeout, as_json=as_json))


def connect(
    name: Name = None,
    stack: OnStack = None,
    dashboard: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port for the dashboard.", show_default="8265, or a free one")
    ] = None,
    client: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port for Ray Client.", show_default="10001, or a free one")
    ] = None,
    *,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print what does the same without berth, and end.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Forward a berth's dashboard and client ports to this machine, until Ctrl-C.

    Prints a ready-made `ray job submit` line. Ray's token is in a file that only you can read, and that is gone at the end. When
    the head restarts, the ports are forwarded to the new one. Exit code 0 at Ctrl-C, 1 if the berth is not ready (with the
    reasons), is suspended, or can't be asked, 2 for a wrong name or a port that is taken.
    """
    with plain_errors():
        from berth.cli import connect as verb  # noqa: PLC0415

        wanted = verb.Wanted(name, stack, dashboard, client, as_json=as_json)
        raise typer.Exit(verb.print_by_hand(wanted) if print_only else verb.connect(wanted))


def logs(
    name: Name = None,
    stack: OnStack = None,
    worker: Annotated[
        int | None, typer.Option(min=1, help="The log of this worker, counted from 1 by name.", metavar="N")
    ] = None,
    tail: Annotated[int | None, typer.Option(min=0, help="Only so many of the last lines.", show_default="all")] = None,
    *,
    head: Annotated[bool, typer.Option("--head", help="The head's log; what is shown without an option.")] = False,
    operator: Annotated[bool, typer.Option("--operator", help="What the KubeRay operator says of it.")] = False,
    previous: Annotated[
        bool, typer.Option("--previous", help="Of the container before this one, where it was restarted.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines come, until Ctrl-C.")] = False,
) -> None:
    """Print the log of a berth's head, of a worker, or the operator's lines about it.

    Exit code 0 if there is a log, 1 if there is none or it can't be asked, 2 for a wrong name.
    """
    if sum((head, worker is not None, operator)) > 1:
        fail("--head, --worker and --operator are three logs; choose one", BAD_INPUT)
    with plain_errors():
        from berth.cli import logs as verb  # noqa: PLC0415

        wanted = verb.Wanted(worker=worker, operator=operator, tail=tail, previous=previous, follow=follow)
        raise typer.Exit(verb.logs(name, stack, wanted))


def diagnose(
    name: Name = None,
    stack: OnStack = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; `-` for stdout.", show_default="berth-NAME-TIME.md"),
    ] = None,
    *,
    no_plan: Annotated[bool, typer.Option("--no-plan", help="Leave out what `pulumi up` would do.")] = False,
    as_json: Json = False,
) -> None:
    """Gather all that tells why a berth is as it is into one text file, secrets removed, for whoever helps.

    Settings, plan, RayCluster, pods, events, claims, nodes, logs, status and versions. What can't be had is named, and the rest
    is written all the same. Exit code 0 if the file is written, 1 if nothing could be asked, 2 for a wrong name.
    """
    with plain_errors():
        from berth.cli.diagnose import verb  # noqa: PLC0415

        raise typer.Exit(verb.diagnose(name, stack, output, plan=not no_plan, as_json=as_json))


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
AllowDestroy = Annotated[
    bool, typer.Option("--allow-destroy", help="Don't ask though running work or capacity is lost.")
]


def up(stack: Stack, *, yes: Yes = False, allow_destroy: AllowDestroy = False, as_json: Json = False) -> None:
    """`pulumi up` with what it would lose said first, progress by component, and a summary.

    Exit code 0 if everything is there and ready, 1 if the engine or a RayCluster fails, 2 for wrong settings, an unknown stack or
    where nobody can be asked, 3 if running work or capacity would be lost and nobody agreed to it.
    """
    with plain_errors():
        from berth.cli.update import verb  # noqa: PLC0415

        raise typer.Exit(verb.up(stack, verb.Options(yes=yes, allow_destroy=allow_destroy, as_json=as_json)))


def destroy(stack: Stack, *, yes: Yes = False, allow_destroy: AllowDestroy = False, as_json: Json = False) -> None:
    """`pulumi destroy` that first says whose berths, and what runs on them, would be lost.

    Of an environment also the berths of other stacks on it. Where any would be lost, `--yes` alone is not enough. Exit code 0 if
    all is gone, 1 if the engine fails, 2 for an unknown stack or where nobody can be asked, 3 if berths would be lost and nobody
    agreed to it.
    """
    with plain_errors():
        from berth.cli.update import verb  # noqa: PLC0415

        raise typer.Exit(verb.destroy(stack, verb.Options(yes=yes, allow_destroy=allow_destroy, as_json=as_json)))


ALL = (connect, logs, wake, suspend, diagnose, up, destroy)
"""In the order in which `berth --help` shows them."""
