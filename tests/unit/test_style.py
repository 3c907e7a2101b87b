"""Rules of plain English and of size: first words of docstrings, names, lengths of files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CLONE = Path(__file__).resolve().parents[2]
FOLDERS = ("components", "stacks", "cli", "lab", "bench", "docs", "tests")
LONGEST = 400

# A docstring's first line names its subject: it does not begin with a pronoun, a preposition or a
# conjunction.
NO_SUBJECT = frozenset(
    """
    a-pronoun: that those whose of what it its they who whom them their this these such there
    a-preposition: as from by in on at with without to for
    a-conjunction: how where when which if so than then but and or because while until since before after
    a-quantity: not nobody somebody everything something anything nothing all each both
    """.split()
)
NO_NOUNS = frozenset("each its told said kept wanted made them their whose those".split())

MODULES = sorted(
    file.relative_to(CLONE)
    for folder in FOLDERS
    for file in (CLONE / folder).rglob("*.py")
    if "gallery" not in file.parts
)


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring, those of attributes too."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        before: ast.stmt | None = None
        for statement in node.body:
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))) if before is None or isinstance(
                    before, ast.Assign | ast.AnnAssign
                ):
                    yield statement.lineno, text.strip()
            before = statement


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every variable, argument, function and class that is defined."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def problems(path: Path) -> list[str]:
    text = (CLONE / path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = [
        f"{path}:{line}: begins with {first[0]!r}: {docstring.splitlines()[0]}"
        for line, docstring in docstrings(tree)
        if (first := re.match(r"\W*([A-Za-z']+)", docstring)) and first[1].lower() in NO_SUBJECT
    ]
    found += [
        f"{path}:{line}: {name!r} is no noun of the field"
        for line, name in identifiers(tree)
        if name.strip("_").lower() in NO_NOUNS
    ]
    length = text.count("\n")
    if length > LONGEST and path.parts[0] != "tests":
        found.append(f"{path}: {length} lines; split it at {LONGEST}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_and_names_follow_the_rules(folder: str) -> None:
    found = [problem for path in MODULES if path.parts[0] == folder for problem in problems(path)]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_no_file_has_marks_of_a_conflict() -> None:
    marks = re.compile(r"^\s*(<{7}|>{7}) ", flags=re.MULTILINE)
    assert [str(path) for path in MODULES if marks.search((CLONE / path).read_text(encoding="utf-8"))] == []
