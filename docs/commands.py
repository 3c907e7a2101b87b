"""Reference of all commands, written from the command line's own help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import typer
from typer import Context

from berth.cli.main import app

_WIDTH = 100

_HEAD = """\
# Commands

All commands of `berth`, in the words of their `--help`. `make pages` writes this page.

Data goes to stdout, everything else to stderr. A command that prints data has `--json`.

| exit code | meaning |
|---|---|
| 0 | The command did what it says. |
| 1 | Something failed on the way, or is not ready. |
| 2 | The input is wrong: an argument, a setting, a policy, a stack that is not up. Nothing was changed. |
| 3 | Running work or capacity would be lost, and nobody agreed to it. Of `berth lab env` and `berth lab status`: \
the lab is not up. |
| 4 | `berth preview --expect-no-changes` found changes. |
| 129 | SIGHUP: the terminal was closed. |
| 130 | Ctrl-C. |
| 143 | SIGTERM. |
| 255 | Of `berth ssh`: the connection broke, or was refused. |
"""

_EXIT = re.compile(r"Exit\s+codes?:?\s.*", flags=re.DOTALL)
_EXAMPLE = re.compile(r"^Example: `(.+)`$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """Command or group of commands.

    Attributes:
        path: words with which it is called: `berth lab up`.
        click: the command, as typer builds it.
        group: whether commands are inside.
    """

    path: str
    click: Any
    group: bool

    @property
    def paragraphs(self) -> list[str]:
        """Paragraphs of the help, each in one line, without the exit codes and examples."""
        text = _EXIT.sub("", _EXAMPLE.sub("", self.click.help or ""))
        return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]

    @property
    def exit_codes(self) -> str:
        """Sentence on the exit codes; empty without one."""
        found = _EXIT.search(_EXAMPLE.sub("", self.click.help or ""))
        return " ".join(found[0].split()) if found else ""

    @property
    def examples(self) -> list[str]:
        """Example calls."""
        return _EXAMPLE.findall(self.click.help or "")

    @property
    def usage(self) -> str:
        """Usage in one line."""
        if self.group:
            return f"{self.path} COMMAND"
        words = [_usage(parameter) for parameter in self._parameters if parameter.required or _is_argument(parameter)]
        options = [
            parameter for parameter in self._parameters if not parameter.required and not _is_argument(parameter)
        ]
        return " ".join([self.path, *words, *(["[OPTIONS]"] if options else [])])

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Arguments and options with their defaults and descriptions."""
        return [(_names(parameter), _default(parameter), parameter.help or "") for parameter in self._parameters]

    @property
    def _parameters(self) -> list[Any]:
        return [parameter for parameter in self.click.params if not parameter.hidden]


def commands() -> Iterator[Command]:
    """Yield every command and every group but `berth` itself, a group before what is inside."""
    yield from _inside(typer.main.get_command(app), "berth")


def _inside(group: Any, path: str) -> Iterator[Command]:
    context = Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        nested = hasattr(command, "list_commands")
        yield Command(f"{path} {name}", command, nested)
        if nested:
            yield from _inside(command, f"{path} {name}")


def _is_argument(parameter: Any) -> bool:
    return not parameter.opts[0].startswith("-")


def _value(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper().replace("_", "-"))


def _usage(parameter: Any) -> str:
    if not _is_argument(parameter):
        return f"{parameter.opts[0]} {_value(parameter)}"
    word = f"{_value(parameter)}…" if parameter.nargs == -1 else _value(parameter)
    return word if parameter.required else f"[{word}]"


def _names(parameter: Any) -> str:
    if _is_argument(parameter):
        return f"`{_value(parameter)}`"
    value = "" if parameter.is_flag else f" {_value(parameter)}"
    return ", ".join(f"`{name}{value}`" for name in [*parameter.opts, *parameter.secondary_opts])


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if isinstance(shown := getattr(parameter, "show_default", None), str):
        return shown
    if parameter.default is None or (getattr(parameter, "is_flag", False) and not parameter.secondary_opts):
        return ""
    if parameter.secondary_opts:
        return f"`{parameter.opts[0] if parameter.default else parameter.secondary_opts[0]}`"
    return f"`{parameter.default}`"


def page() -> str:
    """Return the page's text."""
    return "\n".join([_HEAD, *("\n".join(_section(command)) for command in commands())])


def _section(command: Command) -> Iterator[str]:
    yield f"{'#' * (command.path.count(' ') + 1)} {command.path}"
    yield ""
    for paragraph in command.paragraphs:
        yield from (fill(paragraph, _WIDTH), "")
    if command.group:
        return
    yield from ("```text", command.usage, "```", "")
    if command.rows:
        yield from ("| argument or option | default | description |", "|---|---|---|")
        yield from (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in command.rows)
        yield ""
    if command.exit_codes:
        yield from (fill(command.exit_codes, _WIDTH), "")
    for example in command.examples:
        yield from (f"Example: `{example}`", "")
