"""References of berth's texts to its pages: `berth docs gke#capacity`, and what used to be paths.

Texts are those that people may see: strings of Python, with the docstrings of commands and
settings, other files of the package, and a repository that `berth new` wrote.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_REFERENCE = re.compile(r"\bberth\s+docs\s+([a-z](?:[\w/.-]*\w)?(?:#[\w-]*\w)?)")
_PATH = re.compile(r"(?<![\w/.:-])(?:docs|images|stacks/gallery)/[\w./-]+\.(?:md|ya?ml|py)\b")
_TARGET = re.compile(r"\bmake ((?:lab|venv|check|upgrade)[a-z-]*)")
_TEXTS = {".css", ".html", ".json", ".md", ".txt", ".yaml", ".yml", ""}
_GAP = "\0"


def references(texts: Iterable[str]) -> set[str]:
    """Return the names of the pages, sections and files that texts refer to."""
    return {name for text in texts for name in _REFERENCE.findall(text)}


def paths(texts: Iterable[str]) -> set[str]:
    """Return the paths of pages and examples that texts name, of which a repository has none."""
    return {path for text in texts for path in _PATH.findall(text)}


def targets(texts: Iterable[str]) -> set[str]:
    """Return the targets of make that texts name, of those that a user's repository may have."""
    return {name for text in texts for name in _TARGET.findall(text)}


@dataclass(frozen=True)
class Text:
    """Text of the package.

    Attributes:
        text: the text; of an f-string with gaps for its values.
        is_docstring: whether it is one: those of commands and settings are printed, others are not.
    """

    text: str
    is_docstring: bool


def texts_of(file: Path) -> Iterator[Text]:
    """Yield the texts of a file: all of it, but of Python its strings."""
    if file.suffix == ".py":
        yield from _strings(ast.parse(file.read_text(encoding="utf-8")))
    elif file.suffix in _TEXTS:
        yield Text(file.read_text(encoding="utf-8"), is_docstring=False)


def _strings(tree: ast.Module) -> Iterator[Text]:
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)):
                yield Text(text, node in docstrings)
            case ast.JoinedStr(values=values):
                parts = (
                    str(part.value) if isinstance(part, ast.Constant) else _GAP for part in values
                )
                yield Text("".join(parts), is_docstring=False)
            case _:
                pass
