"""Pages of HTML that commands write: one file each, which loads nothing from elsewhere."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

_STYLE = Path(__file__).with_name("page.css")
"""CSS of all pages."""


def html_document(title: str, parts: Iterable[str], style: str = "") -> str:
    """Return a page.

    Args:
        title: text of the page.
        parts: HTML below the title.
        style: CSS beside that of all pages.
    """
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE.read_text(encoding='utf-8')}{style}</style>"
    )
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def html_table(heads: Iterable[str], rows: Iterable[Iterable[str | tuple[str, str]]]) -> str:
    """Return a table, whose rows become cards on a narrow screen.

    A column in which every cell is "–" is left out.

    Args:
        heads: heads of the columns.
        rows: cells of each row: a text, or a text with its class.
    """
    lines = [_with_classes(row) for row in rows]
    titles = list(heads)
    shown = [number for number in range(len(titles)) if _has_value(number, lines)]
    head = "".join(f"<th>{escape(titles[number])}</th>" for number in shown)
    body = ""
    for line in lines:
        cells = [_cell(titles[number], *line[number]) for number in shown]
        body += f"<tr>{''.join(cells)}</tr>"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _with_classes(row: Iterable[str | tuple[str, str]]) -> list[tuple[str, str]]:
    return [cell if isinstance(cell, tuple) else (cell, "") for cell in row]


def _has_value(column: int, lines: Sequence[Sequence[tuple[str, str]]]) -> bool:
    return not lines or any(line[column][0] != "–" for line in lines)


def _cell(head: str, text: str, kind: str) -> str:
    return f'<td data-head="{escape(head)}" class="{escape(kind)}"><span>{escape(text)}</span></td>'


def html_list(texts: Iterable[str]) -> str:
    """Return a list of texts that need attention; "" for none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="warn">{items}</ul>' if items else ""
