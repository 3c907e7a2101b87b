"""Pages of the documentation with their sections, and the other files that berth ships.

The name of docs/gke.md is `gke`, that of a section of it `gke#capacity`. The name of any other file
is its path, of which a folder `docs` is left out: `stacks/Pulumi.prod.yaml`, `programs/gke.py`.
"""

import re
from dataclasses import dataclass

from berth.cli.repository.markdown import headings, outside_fences, section, with_link_texts
from berth.cli.repository.shipped import shipped_files, shipped_text
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean

_LIST = "run: berth docs"
_COMMENT = re.compile(r"<!--.*?-->\n?", flags=re.DOTALL)


@dataclass(frozen=True)
class Document:
    """Text that `berth docs` prints.

    Attributes:
        name: how `berth docs` names it.
        text: Markdown of a page or a section, or the text of another file.
        is_page: whether the text is Markdown.
    """

    name: str
    text: str
    is_page: bool


def document_named(name: str) -> Document:
    """Return a page, a section of one, or a file.

    Raises:
        BadInputError: there is none with this name.
    """
    paths = _paths()
    page, _, anchor = name.partition("#")
    if page not in paths:
        raise BadInputError(f"berth has no page {page!r}{did_you_mean(page, paths)}", _LIST)
    path = paths[page]
    text = shipped_text(path)
    if not _is_page(path):
        if anchor:
            raise BadInputError(f"{page!r} is a file without sections", f"{_LIST} {page}")
        return Document(name, text, is_page=False)
    if anchor:
        text = _section(page, text, anchor)
    return Document(name, with_commands(text, path), is_page=True)


def titles_of_pages() -> dict[str, str]:
    """Return the titles of all pages by their names."""
    return {
        name: headings(shipped_text(path))[0].title
        for name, path in _paths().items()
        if _is_page(path)
    }


def completed_names(incomplete: str) -> list[str]:
    """Return the names that begin with some letters: pages, or sections after a `#`."""
    document, anchored, _ = incomplete.partition("#")
    names = list(_paths())
    if anchored and document in names:
        found = headings(shipped_text(_paths()[document]))
        names = [f"{document}#{heading.anchor}" for heading in found]
    return [name for name in names if name.startswith(incomplete)]


def _paths() -> dict[str, str]:
    """Return the paths of all pages and files by their names, pages first."""
    files = sorted(shipped_files(), key=lambda path: (not _is_page(path), path))
    return {_name_of(path): path for path in files}


def _is_page(path: str) -> bool:
    return path.endswith(".md")


def _name_of(path: str) -> str:
    if path == "README.md":
        return "readme"
    return path.removeprefix("docs/").removesuffix("/README.md").removesuffix(".md")


def _section(page: str, text: str, anchor: str) -> str:
    found = section(text, anchor)
    if found is None:
        hint = did_you_mean(anchor, (heading.anchor for heading in headings(text)))
        raise BadInputError(f"page {page!r} has no section {anchor!r}{hint}", f"{_LIST} {page}")
    return found


def with_commands(text: str, path: str) -> str:
    """Return Markdown without comments, in which a link to a document is the command for it.

    Args:
        text: the Markdown.
        path: path of its file in berth's source tree, from which its links lead.
    """
    names = {known: name for name, known in _paths().items()}

    def prepared(part: str) -> str:
        return with_link_texts(_COMMENT.sub("", part), path, names)

    return outside_fences(prepared, text)
