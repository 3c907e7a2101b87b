"""Markdown of the pages: headings with their anchors, sections, and links between files."""

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*\n?", flags=re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.+)$", flags=re.MULTILINE)
_LINK = re.compile(
    r"(?P<picture>!?)\[(?P<text>[^]]*)\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)"
)
_WEB = re.compile(r"[a-z]+:")


@dataclass(frozen=True)
class Heading:
    """Heading of a section.

    Attributes:
        level: 1 for the page's own heading.
        title: text of the heading.
        anchor: the section's name in links, as GitHub makes it of the title.
        start: offset of the heading in the page's text.
    """

    level: int
    title: str
    anchor: str
    start: int


def headings(text: str) -> list[Heading]:
    """Return the headings of a page in their order."""
    fences = [found.span() for found in _FENCE.finditer(text)]
    found = []
    for match in _HEADING.finditer(text):
        if not any(start <= match.start() < end for start, end in fences):
            title = _LINK.sub(lambda link: link["text"], match[2]).strip()
            found.append(Heading(len(match[1]), title, anchor_of(title), match.start()))
    return found


def anchor_of(title: str) -> str:
    """Return the anchor of a heading: `first-berth` of `First berth`."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(text: str, anchor: str) -> str | None:
    """Return a section with those below it; None if the page does not have it."""
    found = headings(text)
    for index, heading in enumerate(found):
        if heading.anchor == anchor:
            after = (other for other in found[index + 1 :] if other.level <= heading.level)
            following = next(after, None)
            end = following.start if following else len(text)
            return text[heading.start : end].rstrip() + "\n"
    return None


def outside_fences(change: Callable[[str], str], text: str) -> str:
    """Return a text in which everything but its blocks of code is changed."""
    parts = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(text[end:])])


def with_link_texts(text: str, path: str, names: Mapping[str, str]) -> str:
    """Return Markdown in which a link to a file is the command that prints the file.

    Of a picture, and of a link to any other file, the text stays.

    Args:
        text: the Markdown.
        path: path of the page that has it.
        names: names of documents, as `berth docs` takes them, by their paths.
    """

    def replaced(link: re.Match[str]) -> str:
        if _WEB.match(link["target"]):
            return link[0]
        target = link["target"] or posixpath.basename(path)
        name = names.get(posixpath.normpath(posixpath.join(posixpath.dirname(path), target)))
        if link["picture"] or name is None:
            return link["text"]
        command = f"`berth docs {name}{link['anchor'] or ''}`"
        is_path = link["text"].strip("`").endswith(posixpath.basename(target))
        return command if is_path else f"{link['text']} ({command})"

    return _LINK.sub(replaced, text)
