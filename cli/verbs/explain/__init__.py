"""`berth explain`."""

import json
from typing import Annotated

import typer

from berth.cli.reach.arguments import Json
from berth.cli.shell.console import out, print_json
from berth.components.core.errors import BadInputError


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

    Paths begin at an environment; `engineer` is an engineer's stack. The end of a path is enough,
    such as `rdma`: several settings with that end are listed.

    Exit code 0, or 2 for a setting that does not exist; with --json also for the end of several.

    Example: `berth explain pools.capacity`

    Example: `berth explain engineers.worker --recursive`
    """
    from berth.cli.verbs.explain.search import settings_named
    from berth.cli.verbs.explain.sheet import list_lines, outline_lines, sheet_lines
    from berth.stacks.load.schema import schema_text

    found = settings_named(json.loads(schema_text()), path)
    width = min(out.width, 100)
    setting = found[0]
    if as_json:
        if len(found) > 1:
            raise BadInputError(
                f"{len(found)} settings are named {path}, and a document has one",
                f"name one: {', '.join(one.path for one in found)}",
            )
        print_json(setting.document(recursive=recursive))
        return 0
    if len(found) > 1:
        lines = list_lines(path, found, width)
    else:
        lines = outline_lines(setting) if recursive else sheet_lines(setting, width)
    out.print("\n".join(lines), markup=True)
    return 0
