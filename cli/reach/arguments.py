"""Arguments and options that several verbs have."""

import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from berth.cli.reach import completion
from berth.components.core.errors import BadInputError
from berth.components.programs.lifetimes import parse_duration


def seconds_of(timeout: str) -> int:
    """Return the seconds of option `--timeout`.

    Raises:
        BadInputError: the text is not a duration.
    """
    try:
        return parse_duration(timeout)
    except ValueError as error:
        raise BadInputError(f"--timeout: {error}", "write a duration such as 90s or 10m") from None


_NOT_NAMED = "\0"
"""Stack of a call that names none; no argument can have this value."""


def by_path(stack: str) -> str:
    """Return a stack's name, also where the path of its file names it."""
    from berth.stacks.files.stack_file import stack_name_of  # noqa: PLC0415 - reading YAML takes a while to import

    return stack_name_of(stack)


def _named_stack(ctx: typer.Context, stack: str) -> str:
    """Return the stack that the call names, else the project's."""
    if stack != _NOT_NAMED or ctx.resilient_parsing:
        return by_path(stack)
    from berth.cli.reach.selected_stack import stack_of_the_project  # noqa: PLC0415 - seldom needed

    return stack_of_the_project()


_NAME = typer.Argument(
    metavar="NAME", help="Engineer's id, or cluster's name.", autocompletion=completion.names
)
Name = Annotated[str | None, _NAME]
RequiredName = Annotated[str, _NAME]
OnStack = Annotated[
    str | None,
    typer.Option(
        "--stack",
        "-s",
        help="Stack of the environment, or the engineer's own.",
        callback=lambda stack: by_path(stack) if stack else stack,
        show_default="the one that has NAME, if several the selected one",
        autocompletion=completion.stacks,
    ),
]
Stack = Annotated[
    str,
    typer.Option(
        "--stack",
        "-s",
        help="Stack of an environment, or an engineer's.",
        default_factory=lambda: _NOT_NAMED,
        callback=_named_stack,
        show_default="the selected one, or the only one that is up",
        autocompletion=completion.stacks,
    ),
]


def whole_number(least: int, most: int | None = None, hint: str = "") -> Callable[[str], int]:
    """Return the parser of an argument that is a whole number.

    Args:
        least: smallest number.
        most: largest number; None for any.
        hint: text behind the error of another argument.
    """
    span = f"from {least} on" if most is None else f"from {least} to {most}"

    def number(text: str) -> int:
        if re.fullmatch("[0-9]{1,9}", text):
            value = int(text)
            if value >= least and (most is None or value <= most):
                return value
        raise typer.BadParameter(f"{text!r} is not a whole number {span}{hint}")

    return number


def port_option(meaning: str, usual: int) -> Any:
    """Return the option for a port of this machine, by default the usual one."""
    return typer.Option(
        parser=whole_number(1, 65535),
        help=meaning,
        metavar="PORT",
        show_default=f"{usual}, or a free one",
    )


def _worker(text: str) -> str:
    if not re.fullmatch(r"([a-z][-a-z0-9]*/)?[1-9][0-9]{0,4}", text, re.ASCII):
        raise typer.BadParameter(
            f"{text!r} is neither a number from 1 on nor GROUP/NUMBER; write 1 or gpu/1"
        )
    return text


Worker = Annotated[
    str | None,
    typer.Option(
        parser=_worker,
        help="This worker, counted from 1 by name: of all, or of a group as in gpu/1.",
        metavar="[GROUP/]N",
        show_default="the head",
    ),
]
User = Annotated[str, typer.Option(help="User of the image.", metavar="USER")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
Timeout = Annotated[str, typer.Option(help="How long to wait.", metavar="DURATION")]
AllowDestroy = Annotated[
    bool,
    typer.Option("--allow-destroy", help="Don't ask even if running work or capacity is lost."),
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")]
Workers = Annotated[
    str | None,
    typer.Option(metavar="N|MIN..MAX", help="Number of workers; a range for Ray's autoscaler."),
]
Gpus = Annotated[
    int | None,
    typer.Option(
        parser=whole_number(0, hint="; a part of a GPU is a share of a pool with `sharing`"),
        help="GPUs of one worker; on a pool that shares its GPUs, shares of one.",
        metavar="N",
    ),
]
Cpu = Annotated[str | None, typer.Option(metavar="CORES", help="Cores of one worker: 8, or 500m.")]
Memory = Annotated[str | None, typer.Option(metavar="BYTES", help="Memory of one worker: 32Gi.")]
HeadCpu = Annotated[str | None, typer.Option(metavar="CORES", help="Cores of the head.")]
HeadMemory = Annotated[str | None, typer.Option(metavar="BYTES", help="Memory of the head.")]
Pool = Annotated[
    str | None, typer.Option(help="Node pool of the workers.", autocompletion=completion.pools)
]
Image = Annotated[
    str | None,
    typer.Option(help="Container image; its Ray version must be the settings' rayVersion."),
]
