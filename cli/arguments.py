"""Arguments and options that several verbs have."""

from __future__ import annotations

from typing import Annotated

import typer

from berth.components.core.errors import BadInputError


def complete_names(incomplete: str) -> list[str]:
    """Return engineers and clusters, for a shell's completion."""
    from berth.cli.berths import names  # noqa: PLC0415 - the kubernetes client takes a while to import

    return names(incomplete)


def complete_stacks(incomplete: str) -> list[str]:
    """Return stacks, for a shell's completion."""
    from berth.stacks.stack_file import stack_names  # noqa: PLC0415

    return [stack for stack in stack_names() if stack.startswith(incomplete)]


def seconds_of(timeout: str) -> int:
    """Return the seconds of option `--timeout`.

    Raises:
        BadInputError: it is not a duration.
    """
    from berth.components.core.types import parse_duration  # noqa: PLC0415

    try:
        return parse_duration(timeout)
    except ValueError as error:
        raise BadInputError(f"--timeout: {error}") from None


Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Engineer's id, or cluster's name.", autocompletion=complete_names),
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
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
Timeout = Annotated[str, typer.Option(help="How long to wait.", metavar="DURATION")]
AllowDestroy = Annotated[
    bool, typer.Option("--allow-destroy", help="Don't ask even if running work or capacity is lost.")
]
