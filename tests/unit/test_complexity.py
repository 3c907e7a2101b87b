"""Complexity of functions: one that is over the bound is several functions with names."""

from collections.abc import Iterator

import pytest
from radon.complexity import cc_visit

from berth.lab.home import CLONE

MOST = 15
"""Cyclomatic complexity, which counts the conditions inside comprehensions too; not assertions."""

FOLDERS = ("bench", "chaos", "cli", "components", "docs", "lab", "stacks", "tests")


def functions_over(bound: int, folder: str) -> Iterator[str]:
    for file in sorted((CLONE / folder).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for block in cc_visit(text, no_assert=True):
            for function in getattr(block, "methods", [block]):
                if function.complexity > bound:
                    where = file.relative_to(CLONE)
                    yield f"{where}:{function.lineno}: {function.name} has {function.complexity}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_is_over_the_bound(folder: str) -> None:
    assert list(functions_over(MOST, folder)) == []


def test_a_function_that_is_over_the_bound_is_named() -> None:
    assert list(functions_over(0, "tests/unit/stacks"))
