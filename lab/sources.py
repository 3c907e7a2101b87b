"""Sources of the lab's simulated behaviours, read from the modules that simulate them.

The last paragraph of a module's docstring has one line or more of the form `Answers to (KIND): SOURCE`, or one line `Simulates
nothing: WHAT IT IS`; a long line goes on in lines that are indented by four spaces. A chart says the same in comments at the top of
its Chart.yaml. In the `__init__.py` of a folder `Simulates nothing` holds for all modules of that folder that say nothing else. A
module without code needs no line.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, get_args

from berth.lab.home import CLONE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Kind = Literal["real", "recorded", "read", "believed"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_FIRST = re.compile(r"(?:Answers to \((\w+)\)|Simulates nothing):(?: (\S.*))?")
_FURTHER = re.compile(r"    +(\S.*)")


@dataclass(frozen=True)
class Source:
    """One line of a module.

    Attributes:
        kind: how the source is known; None where the module simulates nothing.
        text: the program, recording, source or page; or what the module is.
    """

    kind: Kind | None
    text: str


@dataclass(frozen=True)
class Module:
    """A module or chart of the lab.

    Attributes:
        path: path in the clone.
        subject: first line of its docstring.
        sources: its lines, in their order.
        problem: why the lines cannot be read or are missing; empty where they are in order.
    """

    path: str
    subject: str
    sources: tuple[Source, ...] = ()
    problem: str = ""


class SourceError(ValueError):
    """A line of a module that has not the form that `sources` asks for."""


def sources(text: str) -> tuple[Source, ...]:
    """The lines of a docstring, or of comments without their marks.

    Raises:
        SourceError: a line has another form, or other text follows.
    """
    found: list[Source] = []
    for line in text.splitlines():
        first, further = _FIRST.fullmatch(line), _FURTHER.fullmatch(line)
        if first:
            found.append(Source(_kind(first[1]), first[2] or ""))
        elif found and further:
            found[-1] = Source(found[-1].kind, f"{found[-1].text} {further[1]}".strip())
        elif found and line.strip():
            raise SourceError(f"{line!r} follows the lines of sources, which end the docstring")
        elif line.startswith(("Answers to", "Simulates nothing")):
            raise SourceError(f"{line!r} is not of the form `Answers to (KIND): SOURCE` or `Simulates nothing: WHAT`")
    if empty := [source for source in found if not source.text]:
        raise SourceError(f"{len(empty)} of the lines name no source")
    if len(found) > 1 and any(source.kind is None for source in found):
        raise SourceError("a module that simulates nothing answers to nothing")
    return tuple(found)


def _kind(name: str | None) -> Kind | None:
    for kind in KINDS:
        if kind == name:
            return kind
    if name is not None:
        raise SourceError(f"{name!r} is not one of {', '.join(KINDS)}")
    return None


def modules(clone: Path = CLONE) -> list[Module]:
    """Every module and chart of the lab, in the order of their paths."""
    paths = [path for path in (clone / "lab").rglob("*.py") if not path.is_relative_to(clone / "lab" / "tools")]
    charts = (clone / "lab" / "charts").glob("*/Chart.yaml")
    found = [_module(path, clone) for path in paths] + [_chart(path, clone) for path in charts]
    return sorted(found, key=lambda module: module.path)


def believed(folder: str, clone: Path = CLONE) -> Iterator[tuple[str, str]]:
    """Sources of kind `believed` in a folder's modules: pairs of the module's path and the source's text."""
    for module in modules(clone):
        if module.path.startswith(f"{folder}/"):
            yield from ((module.path, source.text) for source in module.sources if source.kind == "believed")


def _module(path: Path, clone: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstring = ast.get_docstring(tree) or ""
    has_code = len(tree.body) > 1 or not docstring
    covered = path.name != "__init__.py" and _simulates_nothing(path.with_name("__init__.py"))
    return _read(path, docstring, clone, needed=has_code and not covered)


def _simulates_nothing(init: Path) -> bool:
    """Whether a folder's `__init__.py` says so of all its modules."""
    if not init.is_file():
        return False
    text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
    return any(line.startswith("Simulates nothing:") for line in text.splitlines())


def _chart(path: Path, clone: Path) -> Module:
    lines = path.read_text(encoding="utf-8").splitlines()
    top = takewhile(lambda line: line.startswith("#"), lines)
    comment = "\n".join(line.removeprefix("#").removeprefix(" ") for line in top)
    return _read(path, comment, clone, needed=True)


def _read(path: Path, text: str, clone: Path, *, needed: bool) -> Module:
    name, subject = str(path.relative_to(clone)), (text.splitlines() or [""])[0]
    try:
        found = sources(text)
    except SourceError as error:
        return Module(name, subject, problem=str(error))
    problem = "names neither what it answers to nor that it simulates nothing" if needed and not found else ""
    return Module(name, subject, found, problem)
