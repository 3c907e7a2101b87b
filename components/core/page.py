"""Pages of HTML that a command writes: one file each, which loads nothing from elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --card: #f6f8fa; --line: #d0d7de; --ink: #1f2328; --muted: #57606a;
  --good: #176130; --bad: #a3201a; --warn: #7a4f00; --link: #0b4f9e; --mark: #4a8ddc }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --card: #161b22; --line: #30363d; --ink: #e6edf3;
  --muted: #9ea7b3; --good: #7fdc9a; --bad: #ff9d96; --warn: #f0c465; --link: #8cc2ff; --mark: #8cc2ff } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; background: var(--page);
  color: var(--ink); overflow-wrap: anywhere }
h1 { font-size: 1.5rem; margin: 0.5rem 0 } h2 { font-size: 1.15rem; margin: 1.75rem 0 0.5rem }
p { margin: 0.4rem 0 } a { color: var(--link) } .muted, .skipped { color: var(--muted) }
.good, .pass { color: var(--good) } .bad, .fail { color: var(--bad); font-weight: 600 } .warn { color: var(--warn) }
.simulated { color: var(--link) }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: 0.35rem 0.9rem 0.35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: normal }
th { color: var(--muted); font-weight: 500 } td.number { font-variant-numeric: tabular-nums }
code { background: var(--card); border-radius: 4px; padding: 0.1rem 0.3rem; overflow-wrap: anywhere }
svg { max-width: 100%; height: auto } svg text { fill: var(--ink) }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 0.75rem }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem 0.8rem }
@media (max-width: 40rem) {
  thead { display: none } tr { display: block; border-bottom: 1px solid var(--line); padding: 0.4rem 0 }
  table, tbody { display: block }
  td { display: flex; gap: 0.75rem; border: 0; padding: 0.1rem 0; overflow-wrap: anywhere }
  td::before { content: attr(data-head); color: var(--muted); flex: 0 0 7rem; font-weight: 400 }
  td span { min-width: 0 }
}
"""


def document(title: str, parts: Iterable[str], style: str = "") -> str:
    """Return a page."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style>"
    )
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def cell(text: str, kind: str = "") -> tuple[str, str]:
    """Return a cell of a table: its text, and its class."""
    return text, kind


def table(heads: Iterable[str], rows: Iterable[Iterable[str | tuple[str, str]]]) -> str:
    """Return a table, whose rows become cards on a narrow screen.

    Args:
        heads: titles of the columns; one in which every cell is "–" is left out.
        rows: cells of the rows, as text or with their class.
    """
    lines = [[item if isinstance(item, tuple) else cell(item) for item in row] for row in rows]
    titles = list(heads)
    shown = [number for number in range(len(titles)) if any(line[number][0] != "–" for line in lines) or not lines]
    head = "".join(f"<th>{escape(titles[number])}</th>" for number in shown)
    body = "".join(
        "<tr>" + "".join(_cell(titles[number], *line[number]) for number in shown) + "</tr>" for line in lines
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(head: str, text: str, kind: str) -> str:
    return f'<td data-head="{escape(head)}" class="{escape(kind)}"><span>{escape(text)}</span></td>'


def problems(texts: Iterable[str]) -> str:
    """Return a list of texts that need attention; "" for none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="warn">{items}</ul>' if items else ""
