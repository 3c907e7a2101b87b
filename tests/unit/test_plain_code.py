"""Plain code: no function is too complex, nothing is packed, and a class name stands for one class.

The bounds are those of the project's own rules (CONTRIBUTING.md); ruff has no rule for them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from radon.complexity import cc_visit

from berth.lab.home import CLONE

MOST = 15
"""Cyclomatic complexity, which counts the conditions inside comprehensions too; not assertions."""

PRODUCT = ("cli", "components", "lab", "stacks")
FOLDERS = (*PRODUCT, "bench", "chaos", "docs", "tests")

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def modules(folder: str) -> Iterator[tuple[Path, str]]:
    for file in sorted((CLONE / folder).rglob("*.py")):
        yield file.relative_to(CLONE), file.read_text(encoding="utf-8")


def too_complex(text: str, bound: int = MOST) -> list[str]:
    blocks = cc_visit(text, no_assert=True)
    return [
        f"{block.lineno}: {block.name} has {block.complexity}"
        for block in blocks
        if block.letter != "C" and block.complexity > bound
    ]


def packed(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and is_two_assignments(node):
            yield f"{node.lineno}: two things are assigned in one line"
        if isinstance(node, COMPREHENSIONS):
            yield from (f"{node.lineno}: {reason}" for reason in packed_comprehension(node))


def is_two_assignments(node: ast.Assign) -> bool:
    """Whether an assignment has a value of its own for each name; a swap needs both at once."""
    names = node.targets[0]
    values = node.value
    if not isinstance(names, ast.Tuple) or not isinstance(values, ast.Tuple):
        return False
    written = {ast.unparse(name) for name in names.elts}
    read = {ast.unparse(part) for part in ast.walk(values) if isinstance(part, ast.expr)}
    return not written & read


def packed_comprehension(node: ast.expr) -> Iterator[str]:
    inner = list(ast.walk(node))[1:]
    if any(isinstance(part, COMPREHENSIONS) for part in inner):
        yield "a comprehension is inside of another one"
    for part in inner:
        if not isinstance(part, ast.comprehension):
            continue
        if isinstance(part.iter, ast.List | ast.Tuple) and len(part.iter.elts) == 1:
            yield "a comprehension has a loop over one element"
        conditions = [test for condition in part.ifs for test in ast.walk(condition)]
        if any(isinstance(test, ast.NamedExpr) for test in conditions):
            yield "a comprehension assigns a name in its filter"


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_is_too_complex(folder: str) -> None:
    found = [f"{file}:{line}" for file, text in modules(folder) for line in too_complex(text)]
    assert found == []


@pytest.mark.parametrize("folder", PRODUCT)
def test_nothing_is_packed(folder: str) -> None:
    found = [f"{file}:{line}" for file, text in modules(folder) for line in packed(text)]
    assert found == []


def test_a_class_name_stands_for_one_class() -> None:
    places: dict[str, list[str]] = {}
    for folder in PRODUCT:
        for file, text in modules(folder):
            if {"gallery", "template"} & set(file.parts):
                continue
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name.lstrip("_"), []).append(str(file))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.parametrize(
    ("code", "reasons"),
    [
        ("a, b = 1, 2", ["1: two things are assigned in one line"]),
        ("a, b = b, a", []),
        ("a, b = pair()", []),
        ("[x for x in [y]]", ["1: a comprehension has a loop over one element"]),
        ("[x for x in xs if (y := x)]", ["1: a comprehension assigns a name in its filter"]),
        ("[[y for y in x] for x in xs]", ["1: a comprehension is inside of another one"]),
        ("[x for x in xs if x]", []),
    ],
)
def test_packed_code_is_noticed(code: str, reasons: list[str]) -> None:
    assert list(packed(code)) == reasons


def test_a_complex_function_is_noticed() -> None:
    branches = "\n".join(f"    if a == {number}:\n        return {number}" for number in range(16))
    assert too_complex(f"def f(a):\n{branches}\n") == ["1: f has 17"]
