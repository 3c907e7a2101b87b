"""`berth docs`."""

from collections.abc import Mapping
from typing import Annotated

import typer

from berth.cli.reach.arguments import Json
from berth.cli.shell.console import out, print_json, print_text
from berth.cli.shell.table import Table

_MOST_COLUMNS = 100
"""Width from which lines of prose are hard to read."""


def _completed(incomplete: str) -> list[str]:
    from berth.cli.repository.documents import completed_names

    return completed_names(incomplete)


def run(
    page: Annotated[
        str,
        typer.Argument(
            help="Page, PAGE#SECTION, or a file that a page names.",
            metavar="PAGE",
            show_default="a list of all pages",
            autocompletion=_completed,
        ),
    ] = "",
    *,
    as_json: Json = False,
) -> int:
    """Print a page of the documentation, a section of it, or a file that a page names.

    Links to other pages are shown as the commands that print them; `berth docs readme#next-steps`
    says which page to read for what. To a file or a program, pages are printed as Markdown.

    Exit code 0, or 2 for a page or section that does not exist.

    Example: `berth docs gke#capacity`

    Example: `berth docs stacks/gallery/Pulumi.solo.yaml > stacks/Pulumi.mine.yaml`
    """
    if page:
        _print_document(page, as_json=as_json)
    else:
        _print_titles(as_json=as_json)
    return 0


def _print_document(name: str, *, as_json: bool) -> None:
    from rich.markdown import Markdown

    from berth.cli.repository.documents import document_named

    document = document_named(name)
    if as_json:
        print_json({"page": document.name, "text": document.text})
    elif document.is_page and out.is_terminal:
        out.print(Markdown(document.text), width=min(out.width, _MOST_COLUMNS))
    else:
        print_text(document.text)


def _print_titles(*, as_json: bool) -> None:
    from berth.cli.repository.documents import titles_of_pages

    titles = titles_of_pages()
    if as_json:
        print_json([{"page": name, "title": title} for name, title in titles.items()])
        return
    out.print(titles_table(titles))


def titles_table(titles: Mapping[str, str]) -> Table:
    """Return the titles of pages for people."""
    table = Table("page", "title")
    for name, title in titles.items():
        table.add_row(name, title)
    return table
