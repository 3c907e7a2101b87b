"""Tables that fold: to any width, without a cell that is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_MOST_LINES = 6
"""A cell of more lines is hard to read: the table becomes a list."""

_SHORT = 24
"""A column that is no wider gets its width before longer texts share what is left."""

_INDENT = 2
_STACKED_BELOW = 60


class Grid:
    """Table for a terminal: columns where they fit, a list of records where they do not.

    Attributes:
        columns: headings.
        title: line above the table; "" for none.
        grouped: the first column names a group of rows; a table shows it once for each group.
        right: headings of right-aligned columns.
    """

    def __init__(self, *columns: str, title: str = "", grouped: bool = False, right: Sequence[str] = ()) -> None:
        self.columns, self.title, self.grouped, self.right = columns, title, grouped, right
        self._rows: list[list[Text]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Add a row, with a cell for each column; text is plain, without rich's markup."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self._rows.append([cell if isinstance(cell, Text) else Text(cell) for cell in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or its records."""
        widths = self._widths(options.max_width - 3 * len(self.columns) - 1)
        if widths:
            yield self._table(widths)
        else:
            yield from self._records(options.max_width)

    def _widths(self, available: int) -> list[int]:
        """Return the columns' widths that fill a width at most; none if a table does not fit."""
        cells = [[Text(heading), *column] for heading, column in zip(self.columns, self._by_column(), strict=True)]
        whole = [max(_longest_line(cell) for cell in column) for column in cells]
        widths = [max(_longest_word(cell) for cell in column) for column in cells]
        spare = available - sum(widths)
        if spare < 0:
            return []
        for number in sorted(range(len(whole)), key=lambda number: whole[number]):
            if whole[number] <= _SHORT:
                more = min(whole[number] - widths[number], spare)
                widths[number] += more
                spare -= more
        for _ in range(spare):
            widest = max(range(len(whole)), key=lambda number: whole[number] / widths[number])
            widths[widest] += whole[widest] > widths[widest]
        lines = max(ceil(longest / width) for longest, width in zip(whole, widths, strict=True))
        return widths if lines <= _MOST_LINES else []

    def _by_column(self) -> list[list[Text]]:
        return [[row[number] for row in self._rows] for number in range(len(self.columns))]

    def _table(self, widths: Sequence[int]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, title=self.title or None, title_justify="left")
        for heading, width in zip(self.columns, widths, strict=True):
            justify: Literal["left", "right"] = "right" if heading in self.right else "left"
            table.add_column(heading, width=width, overflow="fold", justify=justify)
        for number, row in enumerate(self._rows):
            before = self._rows[number - 1][0].plain if number else ""
            after = self._rows[number + 1][0].plain if number + 1 < len(self._rows) else ""
            group = row[0].plain
            first = Text() if self.grouped and number and group == before else row[0]
            table.add_row(first, *row[1:], end_section=self.grouped and group != after)
        return table

    def _records(self, width: int) -> Iterator[Text]:
        if self.title:
            yield Text(self.title, style="italic")
        for row in self._rows:
            yield Text()
            for number, (heading, cell) in enumerate(zip(self.columns, row, strict=True)):
                if cell.plain:
                    label = Text.assemble((f"{heading}: ", "bold"), cell)
                    yield folded(label, width, first=_INDENT * bool(number), after=2 * _INDENT)


class Entry:
    """Text beside its label, or below it on a narrow terminal.

    Attributes:
        label: what the text is about.
        text: the text.
        column: column of the text where it stands beside the label.
        exact: lines below the text that are not wrapped: commands to paste.
    """

    def __init__(self, label: Text, text: str, column: int, exact: Text) -> None:
        self.label, self.text, self.column, self.exact = label, text, column, exact

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        width, column = options.max_width, self.column
        if width < _STACKED_BELOW:
            column = 2 * _INDENT
            yield folded(self.label, width, after=column)
            yield folded(Text(self.text), width, first=column, after=column)
        else:
            beside = Text.assemble(self.label, " " * (column - self.label.cell_len), self.text)
            yield folded(beside, width, after=column)
        for line in self.exact.split("\n") if self.exact else ():
            yield Text.assemble(" " * column, line)


def folded(text: Text, width: int, *, first: int = 0, after: int = 0) -> Text:
    """Return a text that wraps at a width between words; a word that is longer stays whole.

    Args:
        text: a text, with its styles.
        width: the width.
        first: columns that the first line is indented.
        after: columns that every other line is indented.
    """
    lines: list[Text] = []
    for paragraph in text.split("\n", allow_blank=True):
        offsets, column = [], first if not lines else after
        for word in re.finditer(r"\s*\S+", paragraph.plain):
            length = Text(word[0]).cell_len
            if column + length > width and word.start():
                offsets.append(word.end() - len(word[0].lstrip()))
                column, length = after, Text(word[0].lstrip()).cell_len
            column += length
        lines += list(paragraph.divide(offsets))
    for line in lines:
        line.rstrip()
    return Text("\n").join(Text.assemble(" " * (after if number else first), line) for number, line in enumerate(lines))


def _longest_line(cell: Text) -> int:
    return max((Text(line).cell_len for line in cell.plain.splitlines()), default=0)


def _longest_word(cell: Text) -> int:
    return max((Text(word).cell_len for word in cell.plain.split()), default=0)
