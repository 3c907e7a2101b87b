"""Sources of the lab's simulated behaviors, read from the modules that simulate them.

The last paragraph of a module's docstring has one line or more of the form `Answers to (KIND):
SOURCE`, or one line `Simulates nothing: DESCRIPTION`; a long line goes on in lines that are
indented by four spaces. A chart has the same in comments at the top of its Chart.yaml. In the
`__init__.py` of a folder `Simulates nothing` holds for all modules of that folder that have no
line. A module without code needs no line.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, get_args

from berth.lab.home import CLONE

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["real", "recorded", "read"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_FIRST = re.compile(r"(?:Answers to \((\w+)\)|Simulates nothing):(?: (\S.*))?")
_FURTHER = re.compile(r"    +(\S.*)")


@dataclass(frozen=True)
class Source:
    """Line of a module.

    Attributes:
        kind: how the source is known; None where the module simulates nothing.
        text: the program, recording, source or page; or what the module is.
    """

    kind: Kind | None
    text: str


@dataclass(frozen=True)
class Module:
    """Module or chart of the lab.

    Attributes:
        path: path in the clone.
        sources: its lines, in their order.
        problem: why the lines cannot be read or are missing; empty where they are in order.
    """

    path: str
    sources: tuple[Source, ...] = ()
    problem: str = ""


class SourceError(ValueError):
    """Line of a module in another form than this page describes."""


def sources(text: str) -> tuple[Source, ...]:
    """Return the lines of a docstring, or of comments without their marks.

    Raises:
        SourceError: a line has another form, or other text follows.
    """
    found: list[Source] = []
    for line in text.splitlines():
        first, further = _FIRST.fullmatch(line), _FURTHER.fullmatch(line)
        if first:
            kind = next((kind for kind in KINDS if kind == first[1]), None)
            if kind is None and first[1] is not None:
                raise SourceError(f"{first[1]!r} is not one of {', '.join(KINDS)}")
            found.append(Source(kind, first[2] or ""))
        elif found and further:
            found[-1] = Source(found[-1].kind, f"{found[-1].text} {further[1]}".strip())
        elif found and line.strip():
            raise SourceError(f"{line!r} follows the lines of sources, which end the docstring")
        elif line.startswith(("Answers to", "Simulates nothing")):
            raise SourceError(f"{line!r} is not of the form `Answers to (KIND): SOURCE` or `Simulates nothing: TEXT`")
    if empty := [source for source in found if not source.text]:
        raise SourceError(f"{len(empty)} of the lines name no source")
    if len(found) > 1 and any(source.kind is None for source in found):
        raise SourceError("a module that simulates nothing answers to nothing")
    return tuple(found)


def modules(clone: Path = CLONE) -> list[Module]:
    """Return every module and chart of the lab, in the order of their paths."""
    lab = clone / "lab"
    paths = [path for path in lab.rglob("*.py") if not path.is_relative_to(lab / "tools")]
    return [_module(path, clone) for path in sorted([*paths, *lab.glob("charts/*/Chart.yaml")], key=str)]


def _module(path: Path, clone: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tree = ast.parse(text)
        text = ast.get_docstring(tree) or ""
        needed = (len(tree.body) > 1 or not text) and not _covered(path)
    else:
        comments = takewhile(lambda line: line.startswith("#"), text.splitlines())
        text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in comments)
        needed = True
    name = str(path.relative_to(clone))
    try:
        found = sources(text)
    except SourceError as error:
        return Module(name, problem=str(error))
    problem = "names neither what it answers to nor that it simulates nothing" if needed and not found else ""
    return Module(name, found, problem)


def _covered(path: Path) -> bool:
    """Return whether the folder's `__init__.py` says that all its modules simulate nothing."""
    init = path.with_name("__init__.py")
    if path == init or not init.is_file():
        return False
    text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
    return any(line.startswith("Simulates nothing:") for line in text.splitlines())
