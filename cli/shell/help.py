"""Sections of `berth --help`, and groups of commands inside a verb."""

import typer

SECTIONS = {
    "Settings": ("check", "engineer", "explain", "images", "new", "schema", "upgrade"),
    "Deploy": ("create", "destroy", "doctor", "preview", "up"),
    "Use": (),
    "Debug": ("diagnose", "verify"),
    "Lab": ("lab",),
}
"""Verbs by section, in the order of the page; a verb that no section names is in `Use`."""


def section_of(verb: str) -> str:
    """Return the section of a verb."""
    return next((section for section, verbs in SECTIONS.items() if verb in verbs), "Use")


def verb_group(help_text: str) -> typer.Typer:
    """Return a verb that has commands inside."""
    return typer.Typer(
        help=help_text, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown"
    )
