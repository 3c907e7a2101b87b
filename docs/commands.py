"""Reference of all commands, written from the command line's own help."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import typer
from typer import Context

from berth.cli.main import app

_WIDTH = 100
_SEVERAL = 4
"""Number of options from which on another command's descriptions are referred to."""

_COMMON = {
    "`NAME`": "a berth by the engineer's id, or a named cluster.",
    "`--stack STACK`, `-s STACK`": (
        "stack of an environment or an engineer; default: the selected one, or the only one"
        " that is up."
    ),
    "`--worker [GROUP/]N`": (
        "a worker, counted from 1, or of a group as in gpu/1; default: the head."
    ),
    "`--home HOME`": "folder of the lab; default: `.lab`.",
    "`--json`": "print JSON for programs.",
}
"""Arguments and options of many commands, described once."""

_HEAD = """\
# Commands

What each command of `berth` does, with its arguments and options; `--help` of a command also has
its exit codes. Data goes to stdout, everything else to stderr.

| exit code | meaning |
|---|---|
| 0 | The command did what it says. |
| 1 | Something failed on the way, or is not ready. |
| 2 | The input is wrong: an argument, a setting, a policy, a stack that is not up. Nothing was\
 changed. |
| 3 | Running work or capacity would be lost, and nobody agreed to it. Of \
`berth lab env` and `berth lab status`: \
the lab is not up. |
| 4 | `berth preview --expect-no-changes` found changes. |
| 129 | SIGHUP: the terminal was closed. |
| 130 | Ctrl-C. |
| 143 | SIGTERM. |
| 255 | Of `berth ssh`: the connection broke, or was refused. |

Many commands have these arguments and options, which their lists leave out:
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
    def rows(self) -> list[tuple[str, str, str]]:
        """Arguments and options with their defaults and descriptions."""
        return [
            (_names(parameter), _default(parameter), parameter.help or "")
            for parameter in self._parameters
        ]

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
    if parameter.default is None or (
        getattr(parameter, "is_flag", False) and not parameter.secondary_opts
    ):
        return ""
    if parameter.secondary_opts:
        return f"`{parameter.opts[0] if parameter.default else parameter.secondary_opts[0]}`"
    return f"`{parameter.default}`"


def page() -> str:
    """Return the page's text."""
    common = "".join(f"- {names}: {description}\n" for names, description in _COMMON.items())
    shown: dict[tuple[str, str], str] = {}
    return "\n".join(
        [_HEAD, common, *("\n".join(_section(command, shown)) for command in commands())]
    )


def _section(command: Command, shown: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield the lines of a command.

    Args:
        command: the command.
        shown: command that first had an option with a description; those of this one are added.
    """
    yield f"{'#' * (command.path.count(' ') + 1)} {command.path}"
    yield ""
    for paragraph in command.paragraphs:
        yield from (fill(paragraph, _WIDTH), "")
    if command.group:
        return
    yield from _options(command, shown)
    for example in command.examples:
        yield from (f"Example: `{example}`", "")


def _options(command: Command, shown: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield the list of a command's options, and where those stand that others have too."""
    rows: list[str] = []
    elsewhere: dict[str, list[str]] = {}
    group, _, _ = command.path.rpartition(" ")
    own = [
        (*row, shown.setdefault((row[0], row[2]), command.path))
        for row in command.rows
        if row[0] not in _COMMON
    ]
    alike = Counter(first for _, _, _, first in own)
    for names, default, description, first in own:
        in_group = first.startswith(f"{group} ") and group != "berth"
        if first != command.path and (in_group or alike[first] >= _SEVERAL):
            elsewhere.setdefault(first, []).append(_short(names))
        else:
            has_default = default.strip("`") not in ("", "required")
            text = f"{description} Default: {default}." if has_default else description
            rows.append(f"- {names}: {text}")
    if rows:
        yield from (*rows, "")
    for first, names_there in elsewhere.items():
        listed = ", ".join(names_there)
        yield from (fill(f"As in `{first}`: {listed}.", _WIDTH), "")


def _short(names: str) -> str:
    """Return the first name of an argument or option, as code."""
    first = names.partition(" ")[0].strip("`")
    return f"`{first}`"
