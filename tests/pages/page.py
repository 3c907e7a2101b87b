"""Blocks of a documentation page, and marks in comments that say how a test runs them.

A mark is an HTML comment on the line before a block, which readers of the page do not see:

- `<!-- not run: REASON -->`: no test runs the block.
- `<!-- exits with 1: REASON -->`: exit code of every command of the block.
- `<!-- answer "PROMPT" with TEXT -->`: what a reader types when the prompt appears.
- `<!-- Ctrl-C after "TEXT" -->`: a reader ends the command when the text has appeared.
- `<!-- written to FILE -->`: YAML that a reader adds to a file of the checkout.
- `<!-- not written: REASON -->`: YAML that no test adds to a file.
- `<!-- task: NAME -->`: a block of a task that `make tasks` times.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]
PAGES = (
    CLONE / "README.md",
    CLONE / "CONTRIBUTING.md",
    CLONE / "SECURITY.md",
    CLONE / "images/README.md",
    *sorted((CLONE / "docs").glob("*.md")),
)

ENGINEERS_PAGES = ("README.md", "docs/engineer.md")
"""Pages whose blocks tests/lab/test_pages.py runs, in this order, in one checkout with one lab."""
ADMINS_PAGES = ("docs/lab.md", "docs/sharing.md", "docs/gallery.md", "docs/admin.md")
"""Pages whose blocks tests/lab/test_pages_for_admins.py runs."""
RUN = (*ENGINEERS_PAGES, *ADMINS_PAGES)

COMMANDS = ("sh", "console")

_BLOCK = re.compile(r"^((?:<!--[^\n]*-->\n)*)```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!-- (.*) -->")


class MarkError(ValueError):
    """A comment before a block that is not a mark."""


@dataclass
class Marks:
    """Marks of one block.

    Attributes:
        not_run: why no test runs the block; "" if one does.
        exits: exit code of its commands.
        answers: prompts and what a reader types then, in order.
        stop_after: output after which a reader presses Ctrl-C.
        written_to: file of the checkout to which a reader adds the block.
        not_written: why no test adds the block to a file.
        tasks: names of tasks that the block is a part of.
    """

    not_run: str = ""
    exits: int = 0
    answers: list[tuple[str, str]] = field(default_factory=list)
    stop_after: str = ""
    written_to: str = ""
    not_written: str = ""
    tasks: list[str] = field(default_factory=list)

    def read(self, comment: str) -> None:
        """Add a comment's mark.

        Raises:
            MarkError: the comment is not a mark.
        """
        if found := re.fullmatch(r"not run: (.+)", comment):
            self.not_run = found[1]
        elif found := re.fullmatch(r"exits with (\d+): .+", comment):
            self.exits = int(found[1])
        elif found := re.fullmatch(r'answer "(.+)" with (\S+)', comment):
            self.answers.append((found[1], found[2]))
        elif found := re.fullmatch(r'Ctrl-C after "(.+)"', comment):
            self.stop_after = found[1]
        elif found := re.fullmatch(r"written to (\S+)", comment):
            self.written_to = found[1]
        elif found := re.fullmatch(r"not written: (.+)", comment):
            self.not_written = found[1]
        elif found := re.fullmatch(r"task: (.+)", comment):
            self.tasks.append(found[1])
        else:
            raise MarkError(
                f"{comment!r} before a block is not a mark; tests/pages/page.py lists them"
            )


@dataclass(frozen=True)
class Block:
    """Fenced block of a page.

    Attributes:
        page: the page's path in the checkout.
        line: line of the fence, from 1.
        language: word after the fence.
        text: content.
        marks: what the comments before it say.
    """

    page: str
    line: int
    language: str
    text: str
    marks: Marks

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether a test runs the block, if its page runs."""
        return self.language in COMMANDS and not self.marks.not_run

    @property
    def commands(self) -> list[str]:
        """Lines of shell, a continued line in one piece."""
        return [line for line in re.split(r"(?<!\\)\n", self.text) if line.strip()]


def blocks(path: Path) -> list[Block]:
    """Return a page's fenced blocks, in order.

    Raises:
        MarkError: a comment before a block is not a mark.
    """
    text = path.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        marks = Marks()
        for comment in _COMMENT.findall(match[1]):
            marks.read(comment)
        line = text.count("\n", 0, match.start(2)) + 1
        found.append(Block(str(path.relative_to(CLONE)), line, match[2], match[3], marks))
    return found


def without_marks(text: str) -> str:
    """Return a page's text without its comments."""
    return re.sub(r"^<!--.*-->\n", "", text, flags=re.MULTILINE)
