"""Groups of commands inside a verb."""

import typer


def verb_group(help_text: str) -> typer.Typer:
    """Return a verb that has commands inside."""
    return typer.Typer(
        help=help_text, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown"
    )
