"""Sections of `berth --help`, and groups of commands inside a verb."""

from enum import Enum

import typer


class Section(Enum):
    """Section of `berth --help`, in the order of the page; a verb's module names its `SECTION`."""

    SETTINGS = "Settings"
    DEPLOY = "Deploy"
    USE = "Use"
    DEBUG = "Debug"
    LAB = "Lab"


def verb_group(help_text: str) -> typer.Typer:
    """Return a verb that has commands inside."""
    return typer.Typer(help=help_text, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")
