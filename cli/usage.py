"""Wrong calls of a command as errors in berth's style: what is wrong, and what to do."""

from __future__ import annotations

import re
from typing import Any

from typer._click.exceptions import (
    BadOptionUsage,
    BadParameter,
    MissingParameter,
    NoArgsIsHelpError,
    NoSuchOption,
    UsageError,
)

from berth.cli.help import Group, is_argument, placeholder
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean

__all__ = ["NoArgsIsHelpError", "UsageError", "refused"]

_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "path": "a path"}

_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", flags=re.DOTALL)


def refused(error: UsageError) -> BadInputError:
    """Return typer's error as one of berth's."""
    ctx: Any = error.ctx
    path = ctx.command_path if ctx else "berth"
    lists = "lists the commands" if ctx and isinstance(ctx.command, Group) else "shows the arguments and options"
    return BadInputError(_problem(error, ctx, path), f"`{path if ctx else f'{path} COMMAND'} --help` {lists}")


def _problem(error: UsageError, ctx: Any, path: str) -> str:
    parameter: Any = getattr(error, "param", None)
    match error:
        case MissingParameter() if parameter is not None:
            return f"{path} needs {_shown(parameter)}: {_lowered(parameter.help or '')}"
        case BadParameter():
            return f"{_shown(parameter) if parameter is not None else path}: {_value_problem(error)}"
        case NoSuchOption():
            known = [name for parameter in ctx.command.get_params(ctx) for name in parameter.opts] if ctx else []
            near = did_you_mean(error.option_name, (name for name in known if name.startswith("--")))
            return f"{path} has no option {error.option_name!r}{near}"
        case BadOptionUsage() if "requires" in error.message:
            return f"{error.option_name} needs a value"
    if ctx is None:
        return _lowered(error.message)
    if isinstance(ctx.command, Group):
        return _unknown_command(error, ctx, path)
    extra = _EXTRA.fullmatch(error.message)
    return f"{path} does not take {extra[1]!r}" if extra else _lowered(error.message)


def _unknown_command(error: UsageError, ctx: Any, path: str) -> str:
    """Return which command a group does not have."""
    words = [*ctx._protected_args, *ctx.args]  # noqa: SLF001 - typer's groups keep the verb there
    given = words[0] if words else error.message.partition("'")[2].rpartition("'")[0]
    if not given:
        return f"{path} needs a command"
    return f"{path} has no command {given!r}{did_you_mean(given, ctx.command.list_commands(ctx))}"


def _shown(parameter: Any) -> str:
    """Return a parameter as the help shows it: `NAME`, or `--stack STACK`."""
    if is_argument(parameter):
        return placeholder(parameter)
    value = "" if parameter.is_flag else f" {placeholder(parameter)}"
    return f"{max(parameter.opts, key=len)}{value}"


def _value_problem(error: BadParameter) -> str:
    """Return what is wrong with a value, as berth says it of a setting."""
    cause: Any = error.__cause__
    if not hasattr(cause, "errors"):  # pydantic's error has them, and takes a while to import
        return _lowered(error.message)
    details = cause.errors()[0]
    given, limits = details["input"], details.get("ctx", {})
    match details["type"].partition("_"):
        case (kind, _, "parsing" | "type" | "from_float") if kind in _KINDS:
            return f"{given!r} is not {_KINDS[kind]}"
        case ("greater", _, "than_equal"):
            return f"{given} is too small; the smallest is {limits['ge']:g}"
        case ("less", _, "than_equal"):
            return f"{given} is too large; the largest is {limits['le']:g}"
    return _lowered(details["msg"])


def _lowered(text: str) -> str:
    """Return a sentence as the part of another one."""
    return (text[:1].lower() + text[1:]).rstrip(".")
