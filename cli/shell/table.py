"""Tables of every command: whole words at any width, with columns left out where room is short."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

NOTHING = "–"
"""Cell without a value."""

_GAP = 2
"""Width between two columns, in characters."""
_NARROW = 20
"""Width below which a column of sentences is not squeezed, in characters."""


class Table:
    """Table whose cells are plain text, and which its console's width decides.

    A column without a value in any row is not shown. Sentences wrap between words. If the columns
    still need more room than there is, the least important ones are left out, and a line below the
    table names them.
    """

    def __init__(
        self,
        *heads: str,
        title: str = "",
        right: Sequence[str] = (),
        hide_first: Sequence[str] = (),
    ) -> None:
        """Make a table without rows.

        Args:
            heads: heads of the columns; the first column is always shown.
            title: title above the table; empty for none.
            right: heads of columns that are right-aligned.
            hide_first: heads of columns in the order in which they are left out; after these, the
                others from the right.
        """
        self._heads = heads
        self._title = title
        self._right = right
        others = [head for head in reversed(heads[1:]) if head not in hide_first]
        self._hiding = [heads.index(head) for head in (*hide_first, *others)]
        self._rows: list[Sequence[Text]] = []
        self._sections: set[int] = set()

    def add_row(self, *cells: str | Text) -> None:
        """Add a row; text in it is not read as rich's markup."""
        self._rows.append([Text(cell) if isinstance(cell, str) else cell for cell in cells])

    def add_section(self) -> None:
        """Draw a line below the rows so far."""
        self._sections.add(len(self._rows) - 1)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield the table with the columns for which there is room, and the names of the others."""
        of_value = [number for number in range(len(self._heads)) if self._has_value(number)]
        shown = list(of_value)
        for number in self._hiding:
            if self._least_width(shown) <= options.max_width or len(shown) == 1:
                break
            if number in shown:
                shown.remove(number)
        yield self._drawn(shown, options.max_width)
        hidden = [self._heads[number] for number in of_value if number not in shown]
        if hidden:
            yield _hidden_line(hidden, self._least_width(of_value), console)

    def _has_value(self, number: int) -> bool:
        """Return whether a column has a value; in a table without rows each counts as one."""
        if number == 0 or not self._rows:
            return True
        return any(row[number].plain not in ("", NOTHING) for row in self._rows)

    def _drawn(self, shown: Sequence[int], room: int) -> RichTable:
        table = RichTable(
            title=self._title or None,
            collapse_padding=True,
            title_justify="left",
            box=SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
        )
        for number, width in zip(shown, self._widths(shown, room), strict=True):
            head = self._heads[number]
            table.add_column(
                head,
                width=width,
                overflow="fold",
                justify="right" if head in self._right else "left",
            )
        for place, row in enumerate(self._rows):
            table.add_row(*(row[number] for number in shown), end_section=place in self._sections)
        return table

    def _widths(self, shown: Sequence[int], room: int) -> list[int]:
        """Return the columns' widths: what each needs, and an equal share of the room beyond."""
        widths = {number: self._least(number) for number in shown}
        wanted = {number: self._longest_line(number) - widths[number] for number in shown}
        spare = max(room - self._least_width(shown), 0)
        left = len(shown)
        for number in sorted(shown, key=wanted.__getitem__):
            more = min(wanted[number], spare // left)
            widths[number] += more
            spare -= more
            left -= 1
        return list(widths.values())

    def _least_width(self, shown: Sequence[int]) -> int:
        """Return the width that columns need together."""
        return sum(map(self._least, shown)) + _GAP * (len(shown) - 1)

    def _least(self, number: int) -> int:
        """Return the width that a column needs: for its longest word, and for short cells whole."""
        words = self._heads[number].split()
        lines = [0]
        for row in self._rows:
            words += row[number].plain.split()
            lines += map(cell_len, row[number].plain.splitlines())
        return max(min(max(lines), _NARROW), *map(cell_len, words))

    def _longest_line(self, number: int) -> int:
        """Return the width with which no cell of a column wraps."""
        lines = [self._heads[number]]
        for row in self._rows:
            lines += row[number].plain.splitlines()
        return max(map(cell_len, lines))


def _hidden_line(heads: Sequence[str], width: int, console: Console) -> Text:
    """Return the line that names hidden columns, and what shows them."""
    wide = f"a terminal of {width} columns" if console.is_terminal else f"COLUMNS={width}"
    return Text(f"not shown: {', '.join(heads)} ({wide} or --json shows them)", style="dim")
