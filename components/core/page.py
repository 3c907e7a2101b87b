"""Pages of HTML that a command writes: one file each, which loads nothing from elsewhere. Pure."""

from collections.abc import Iterable
from html import escape
from pathlib import Path

_STYLE = Path(__file__).with_name("page.css")
"""Rules of all pages."""


def html_document(title: str, parts: Iterable[str], style: str = "") -> str:
    """Return a page."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE.read_text(encoding='utf-8')}{style}</style>"
    )
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def html_table(heads: Iterable[str], rows: Iterable[Iterable[str | tuple[str, str]]]) -> str:
    """Return a table, whose rows become cards on a narrow screen.

    A column in which every cell is "–" is left out. A cell is a text, or a text with its class.
    """
    lines = [[item if isinstance(item, tuple) else (item, "") for item in row] for row in rows]
    titles = list(heads)
    shown = [
        number
        for number in range(len(titles))
        if any(line[number][0] != "–" for line in lines) or not lines
    ]
    head = "".join(f"<th>{escape(titles[number])}</th>" for number in shown)
    body = "".join(
        "<tr>" + "".join(_cell(titles[number], *line[number]) for number in shown) + "</tr>"
        for line in lines
    )
    return (
        "<div"
        f' class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(head: str, text: str, kind: str) -> str:
    return f'<td data-head="{escape(head)}" class="{escape(kind)}"><span>{escape(text)}</span></td>'


def html_list(texts: Iterable[str]) -> str:
    """Return a list of texts that need attention; "" for none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="warn">{items}</ul>' if items else ""
