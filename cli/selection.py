"""Stack that is meant where none is named: the selected one, or the only one that is up."""

from __future__ import annotations

import json
from collections.abc import Collection

from berth.components.core.errors import BadInputError, BerthError
from berth.stacks.stack_file import project, stack_names


def stack_of_the_project() -> str:
    """Return the stack that `pulumi stack select` chose, else the only one that is up.

    Raises:
        BadInputError: nothing is selected, and no stack is up, or several are; or Pulumi cannot be
            asked.
    """
    stacks = f"stacks are {', '.join(stack_names())}"
    try:
        if selected := _selected():
            return selected
        up = _up()
    except BerthError as error:
        raise BadInputError(
            f"no stack is named, and Pulumi cannot say which one is selected: {error.problem}",
            f"name one with --stack STACK; {stacks}",
        ) from None
    if len(up) == 1:
        return up[0]
    found = f"{', '.join(up)} are up" if up else "no stack is up"
    raise BadInputError(
        f"no stack is named or selected, and {found}",
        f"name one with --stack STACK, or select it: pulumi stack select STACK; {stacks}",
    )


def one_of(stacks: Collection[str]) -> str | None:
    """Return the stack that is meant of several: the selected one, else the only one that is up.

    None if that does not decide, or if Pulumi cannot be asked.
    """
    try:
        selected = _selected()
        if selected in stacks:
            return selected
        up = [stack for stack in _up() if stack in stacks]
    except BerthError:
        return None
    return up[0] if len(up) == 1 else None


def _selected() -> str:
    """Return the stack that `pulumi stack select` chose; "" for none."""
    try:
        return _pulumi("stack", "--show-name").strip()
    except _FailedError:
        return ""


def _up() -> list[str]:
    """Return the project's stacks that have resources."""
    listed = json.loads(_pulumi("stack", "ls", "--json"))
    return [str(stack["name"]) for stack in listed if stack.get("resourceCount")]


class _FailedError(BerthError):
    """Pulumi refused to answer."""


def _pulumi(*words: str) -> str:
    """Return what a command of Pulumi prints.

    Raises:
        BerthError: Pulumi is not installed, not logged in, or fails.
    """
    # Slow to import, and a command that names its stack does without.
    from pulumi.automation import CommandError  # noqa: PLC0415

    from berth.cli.engine import LOG_IN, LOGGED_OUT, is_logged_out  # noqa: PLC0415
    from berth.cli.pulumi_program import Pulumi  # noqa: PLC0415

    pulumi = Pulumi(version=False)
    try:
        return str(pulumi.run(list(words), str(project()), {}).stdout)
    except CommandError:
        if is_logged_out(pulumi.stderr):
            raise BerthError(LOGGED_OUT, f"run: {LOG_IN}") from None
        raise _FailedError(pulumi.stderr.strip().removeprefix("error: ")) from None
