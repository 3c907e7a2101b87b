"""Troubleshooting and glossary: quoted messages and commands are those of the code."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from berth.cli.verbs.explain.effects import EFFECTS
from berth.lab.home import CLONE
from tests.unit.test_docs import parse, text_of

TROUBLE = CLONE / "docs/troubleshooting.md"
_CODE = re.compile(r"`([^`]+)`")
_INLINE = re.compile(r"(?<!`)`(berth [^`]+)`(?!`)")
_NAME = re.compile(r"…|\b[A-Z]{3,}\b(?<!API)(?<!RDMA)(?<!PATH)|\(|\)")
_VALUE = re.compile(r"\{\w+\}")
_GAP = "\0"


@cache
def texts() -> str:
    """Texts of the code and of its YAML, with a gap for each value that is filled in."""
    assert EFFECTS.exists()
    found = []
    for folder in ("cli", "components", "stacks"):
        for file in (CLONE / folder).rglob("*.py"):
            found += [
                template(node) for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            ]
        for file in (CLONE / folder).rglob("*.yaml"):
            found.append(_VALUE.sub(_GAP, " ".join(file.read_text(encoding="utf-8").split())))
    return "\n".join(found)


def template(node: ast.AST) -> str:
    match node:
        case ast.JoinedStr(values=values):
            return "".join(
                str(part.value) if isinstance(part, ast.Constant) else _GAP for part in values
            )
        case ast.Constant(value=str(text)):
            return text
        case _:
            return ""


# Pulumi's own (pulumi v3.250.0, pkg/backend/diy/state.go), and Docker Hub's
# (https://docs.docker.com/docker-hub/usage/pulls).
OF_OTHERS = (
    "failed to load checkpoint: EOF; "
    "toomanyrequests: You have reached your unauthenticated pull rate limit"
)


def quotes(page: Path) -> list[str]:
    """Messages in the first cells of the page's tables."""
    rows = (line for line in text_of(page).splitlines() if line.startswith("| `"))
    return [message for row in rows for message in _CODE.findall(row.split("|")[1])]


@pytest.mark.parametrize("line", quotes(TROUBLE))
def test_a_quoted_message_is_one_of_the_code(line: str) -> None:
    parts = [part.strip(" :;,") for part in _NAME.split(line)]
    assert [part for part in parts if part and part not in texts() and part not in OF_OTHERS] == []


@pytest.mark.parametrize("page", ["troubleshooting", "glossary"])
def test_every_command_of_the_page_is_complete(page: str) -> None:
    wrong = {}
    for code in _INLINE.findall(text_of(CLONE / f"docs/{page}.md")):
        arguments = code.split()[1:]
        named_only = len(arguments) < 3 and not any(word.isupper() for word in arguments)
        if result := parse(arguments, whole=not named_only):
            wrong[code] = result
    assert wrong == {}
