"""`berth explain`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from berth.cli.arguments import Json
from berth.cli.console import out, print_json
from berth.cli.help import Section

SECTION = Section.SETTINGS


def run(
    path: Annotated[
        str, typer.Argument(help="Dotted path of a setting, such as pools.capacity.", metavar="SETTING")
    ] = "",
    *,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="List the settings inside of those below it, too.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Describe a setting: type, default, and the settings inside it.

    Paths begin at an environment; `engineer` is an engineer's stack.

    Exit code 0, or 2 for a setting that does not exist.

    Example: `berth explain pools.capacity`

    Example: `berth explain engineers.worker --recursive`
    """
    from textwrap import fill

    from berth.cli.check import schema_text
    from berth.cli.explain import everything, find

    width, indent = min(out.width, 100), " " * 6
    setting = find(json.loads(schema_text()), path)
    if as_json:
        print_json(setting.document())
        return 0
    out.print(f"[bold]{setting.path}[/]  {setting.type}", highlight=False)
    for label, text in (("default", setting.default), ("for example", ", ".join(setting.examples))):
        if text:
            out.print(f"  {label}: {text}", markup=False)
    if setting.description:
        out.print(f"\n{fill(setting.description, width, initial_indent='  ', subsequent_indent='  ')}\n", markup=False)
    children = [child for child in everything(setting) if child is not setting] if recursive else setting.children()
    for child in children:
        marks = ", required" if child.required else f", default {child.default}" if child.default else ""
        name = child.path[len(setting.path) :].lstrip(".")
        out.print(f"  [bold]{name}[/]  {child.type}{marks}", highlight=False)
        if not recursive:
            out.print(
                fill(child.description or "–", width, initial_indent=indent, subsequent_indent=indent), markup=False
            )
    return 0
