"""`berth explain`."""

import json
from typing import Annotated

import typer

from berth.cli.reach.arguments import Json
from berth.cli.shell.console import out, print_json


def _completed(incomplete: str) -> list[tuple[str, str]]:
    from berth.cli.verbs.explain.completion import completed_settings

    return completed_settings(incomplete)


def run(
    path: Annotated[
        str,
        typer.Argument(
            help="Dotted path of a setting, such as pools.capacity.",
            metavar="SETTING",
            autocompletion=_completed,
        ),
    ] = "",
    *,
    recursive: Annotated[
        bool,
        typer.Option("--recursive", "-r", help="List the settings inside of those below it, too."),
    ] = False,
    as_json: Json = False,
) -> int:
    """Describe a setting: type, default, example, effect of an edit, and the settings inside it.

    Paths begin at an environment; `engineer` is an engineer's stack.

    Exit code 0, or 2 for a setting that does not exist.

    Example: `berth explain pools.capacity`

    Example: `berth explain engineers.worker --recursive`
    """
    from berth.cli.verbs.explain.settings import setting_at
    from berth.cli.verbs.explain.sheet import outline_lines, sheet_lines
    from berth.stacks.load.schema import schema_text

    setting = setting_at(json.loads(schema_text()), path)
    if as_json:
        print_json(setting.document(recursive=recursive))
        return 0
    lines = outline_lines(setting) if recursive else sheet_lines(setting, min(out.width, 100))
    out.print("\n".join(lines), markup=True)
    return 0
