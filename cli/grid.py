"""Tables that fold: to any width, without a cell that is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from math import ceil

from rich.console import Console, ConsoleOptions, RenderResult
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
        yield from self._table(widths, console) if widths else self._records(options.max_width)

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

    def _table(self, widths: Sequence[int], console: Console) -> Iterator[Text]:
        """Yield the lines; rich's own tables take three times as long for a thousand rows."""
        if self.title:
            yield Text(self.title, style="italic")
        yield Text()
        headings = [Text(heading, style="bold") for heading in self.columns]
        yield from reversed(list(self._lines(headings, widths, console, upward=True)))
        yield Text(f" {'─' * (sum(widths) + 3 * len(widths) - 1)}")
        group = None
        for row in self._rows:
            first = row[0].plain
            if self.grouped and group is not None and group != first:
                yield Text()
            shown = Text() if self.grouped and group == first else row[0]
            yield from self._lines([shown, *row[1:]], widths, console)
            group = first
        yield Text()

    def _lines(
        self, cells: Sequence[Text], widths: Sequence[int], console: Console, *, upward: bool = False
    ) -> Iterator[Text]:
        """Yield the lines of a row, whose cells fold at the widths; upward, the last line first."""
        folds = [
            [cell] if cell.cell_len <= width and "\n" not in cell.plain else cell.wrap(console, width, overflow="fold")
            for cell, width in zip(cells, widths, strict=True)
        ]
        step = -1 if upward else 1
        for parts in zip_longest(*(fold[::step] for fold in folds), fillvalue=Text()):
            line = Text("  ")
            for heading, part, width in zip(self.columns, parts, widths, strict=True):
                space = " " * (width - part.cell_len)
                line.append(space if heading in self.right else "").append_text(part)
                line.append("   " if heading in self.right else f"{space}   ")
            line.rstrip()
            yield line

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
