"""Help of commands as plain text that wraps at any width, and the sections of `berth --help`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from textwrap import TextWrapper
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

_WIDEST, _NARROWEST = 100, 24
_STACKED_BELOW = 60
"""Below this width a description stands below its option, and not beside it."""

_Function = TypeVar("_Function", bound=Callable[..., Any])

Entry = tuple[str, str]
"""An option, argument or command, and its description."""


class Section(Enum):
    """Section of `berth --help`, in the order of the page; a verb's module names its `SECTION`."""

    SETTINGS = "Settings"
    DEPLOY = "Deploy"
    USE = "Use"
    DEBUG = "Debug"
    LAB = "Lab"


NOT_NAMED = "\0"
"""Stack of a call that names none; no argument can have this value."""


class Command(TyperCommand):
    """Command with berth's help, and with a stack where the call names none."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        if ctx.params.get("stack") == NOT_NAMED:
            from berth.cli.selection import stack_of_the_project  # noqa: PLC0415 - seldom needed

            ctx.params["stack"] = stack_of_the_project()
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help page."""
        formatter.write(page(self, ctx))


class Group(TyperGroup):
    """Group of commands with berth's help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help page."""
        formatter.write(page(self, ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that arguments name, without typer's words on an unknown one."""
        return self._click_resolve_command(ctx, args)

    def sections(self, ctx: Any) -> Iterable[tuple[str, Sequence[str]]]:
        """Return the sections of the help page, each with its commands' names."""
        return [("Commands", self.list_commands(ctx))]


class VerbGroup(typer.Typer):
    """Verb with commands inside, all of them with berth's help."""

    def __init__(self, help_text: str) -> None:
        super().__init__(cls=Group, help=help_text, no_args_is_help=True, add_completion=False)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Function], _Function]:
        """Return the decorator of a command's function."""
        return super().command(name, **{"cls": Command, **settings})


def page(command: Any, ctx: Any) -> str:
    """Return the help of a command for the terminal's width."""
    width = max(min(shutil.get_terminal_size().columns, _WIDEST), _NARROWEST)
    parameters = [parameter for parameter in command.get_params(ctx) if not parameter.hidden]
    arguments = [
        (placeholder(parameter), _description(parameter)) for parameter in parameters if is_argument(parameter)
    ]
    options = [(_names(parameter), _description(parameter)) for parameter in parameters if not is_argument(parameter)]
    parts = ["\n".join(_wrapped(f"Usage: {_usage(command, ctx, parameters)}", width, after="    "))]
    parts += ["\n".join(_wrapped(paragraph, width)) for paragraph in paragraphs(command.help)]
    for title, names in command.sections(ctx) if isinstance(command, Group) else ():
        parts.append(_section(title, [(name, _summary(command, ctx, name)) for name in names], width))
    for title, entries in (("Arguments", arguments), ("Options", options)):
        if entries:
            parts.append(_section(title, entries, width))
    return "\n\n".join(parts) + "\n"


def paragraphs(text: str | None) -> list[str]:
    """Return the paragraphs of a docstring, each in one line."""
    return [" ".join(part.split()) for part in (text or "").split("\n\n") if part.strip()]


def placeholder(parameter: Any) -> str:
    """Return the word that stands for a parameter's value: `STACK`."""
    return str(parameter.metavar or parameter.name.strip("_").upper().replace("_", "-"))


def is_argument(parameter: Any) -> bool:
    """Return whether a parameter is an argument, and not an option."""
    return not parameter.opts[0].startswith("-")


def _usage(command: Any, ctx: Any, parameters: Sequence[Any]) -> str:
    words = [ctx.command_path]
    for parameter in parameters:
        word = placeholder(parameter) if is_argument(parameter) else f"{parameter.opts[0]} {placeholder(parameter)}"
        if parameter.required:
            words.append(word)
        elif is_argument(parameter):
            words.append(f"[{word}{'…' if parameter.nargs < 0 else ''}]")
    return " ".join([*words, "[OPTIONS]", *(["COMMAND"] if isinstance(command, Group) else [])])


def _names(parameter: Any) -> str:
    """Return the names of an option, the short one first: `-s, --stack STACK`."""
    names = sorted([*parameter.opts, *parameter.secondary_opts], key=lambda name: name.startswith("--"))
    value = "" if parameter.is_flag else f" {placeholder(parameter)}"
    return ", ".join(names) + value


def _description(parameter: Any) -> str:
    """Return what a parameter is, whether it is required, and its default."""
    parts = [parameter.help or ""]
    if parameter.required and not is_argument(parameter):
        parts.append("Required.")
    if default := _default(parameter):
        parts.append(f"Default: {default}.")
    if parameter.envvar:
        parts.append(f"Environment variable: {parameter.envvar}.")
    return " ".join(part for part in parts if part)


def _default(parameter: Any) -> str:
    if isinstance(shown := getattr(parameter, "show_default", None), str):
        return shown
    if parameter.secondary_opts:
        return str(parameter.opts[0] if parameter.default else parameter.secondary_opts[0])
    if parameter.required or parameter.default in (None, "") or getattr(parameter, "is_flag", False):
        return ""
    return str(parameter.default)


def _summary(group: Group, ctx: Any, name: str) -> str:
    """Return the first paragraph of a command's help."""
    command: Any = group.get_command(ctx, name)
    return next(iter(paragraphs(command.help)), "")


def _section(title: str, entries: Sequence[Entry], width: int) -> str:
    return "\n".join([f"{title}:", *(line for entry in _entries(entries, width) for line in entry)])


def _entries(entries: Sequence[Entry], width: int) -> Iterator[list[str]]:
    """Yield the lines of each entry: description beside the name, or below it."""
    longest = max(len(name) for name, _ in entries)
    column = min(longest, width // 3) + 4
    for name, text in entries:
        beside = width >= _STACKED_BELOW and len(name) + 4 <= column
        start, indent = (f"  {name}".ljust(column), " " * column) if beside else (" " * 6, " " * 6)
        lines = _wrapped(text, width, first=start, after=indent)
        yield lines if beside else [*_wrapped(name, width, first="  ", after="    "), *lines]


def _wrapped(text: str, width: int, *, first: str = "", after: str = "") -> list[str]:
    wrapper = TextWrapper(
        width=width, initial_indent=first, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(text)
