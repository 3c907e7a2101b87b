"""Commands of other programs that berth's pages, workflows and messages show.

A message is read from its source: a value in it is `1`, or `some-project` for a project, and a name
that the module or the function gives to a text is that text. A command ends where its line, its
code or its parentheses end, or at `;`.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.pages.page import CLONE, COMMANDS, PAGES, blocks
from tests.workflows import github_scripts, gitlab_scripts

FOLDERS = ("cli", "components", "lab", "stacks")
ALL_PAGES = sorted({*PAGES, *(CLONE / "docs/project").glob("*.md")})

_NO_NAMES: Mapping[str, str] = {}
_INNER = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)\)")
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_FENCED = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)
_OPTIONS = re.compile(r'^(\w+)="(--[^"]+)"', flags=re.MULTILINE)
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True)
class ShownCommand:
    """Command of a program as somebody would run it.

    Attributes:
        place: page, workflow or module that shows it.
        text: the command with its arguments, and a value for each variable.
    """

    place: str
    text: str

    @property
    def is_name(self) -> bool:
        """Whether this is the name of a command, without arguments, as sentences have it."""
        return re.fullmatch(r"[a-z -]+", self.text) is not None and " --" not in self.text


def shown_commands(program: str) -> list[ShownCommand]:
    """Return a program's commands of all pages, workflows and messages, each text once."""
    by_text: dict[str, ShownCommand] = {}
    for command in (*_of_pages(program), *_of_workflows(program), *commands_of_messages(program)):
        by_text.setdefault(command.text, command)
    return list(by_text.values())


def _of_pages(program: str) -> Iterator[ShownCommand]:
    for page in ALL_PAGES:
        place = str(page.relative_to(CLONE))
        for block in blocks(page):
            if block.language in COMMANDS:
                yield from _of_script(program, place, block.text)
        for code in _INLINE.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
            yield from _of_script(program, place, code)


def _of_workflows(program: str) -> Iterator[ShownCommand]:
    for script in (*github_scripts(), *gitlab_scripts()):
        yield from _of_script(program, script.name, script.text)


def _of_script(program: str, place: str, script: str) -> Iterator[ShownCommand]:
    """Yield the commands of a script, whose variables with options are those options."""
    text = script.replace("\\\n", " ")
    options = {name: " ".join(value.split()) for name, value in _OPTIONS.findall(text)}
    for command in commands_in(program, text):
        with_options = _VARIABLE.sub(lambda found: options.get(found[1], found[0]), command)
        yield ShownCommand(place, _VARIABLE.sub(lambda found: _value(found[1]), with_options))


def commands_of_messages(program: str) -> Iterator[ShownCommand]:
    """Yield a program's commands in the texts of berth's code."""
    for folder in FOLDERS:
        for file in sorted((CLONE / folder).rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            if f"{program} " in source:
                place = str(file.relative_to(CLONE))
                for text in texts_of(ast.parse(source)):
                    yield from (
                        ShownCommand(place, command) for command in commands_in(program, text)
                    )


def commands_in(program: str, text: str) -> Iterator[str]:
    """Yield a program's commands in a text of shell or of a message, inner ones too."""
    for inner in _INNER.findall(text):
        yield from commands_in(program, inner)
    plain = text
    while _INNER.search(plain):
        plain = _INNER.sub("1", plain)
    for found in re.finditer(rf"(?<![\w-]){program} (?!is |has )", plain):
        yield re.sub(r"(?<![${])\bPROJECT\b", "some-project", _until_end(plain[found.start() :]))


def _value(name: str) -> str:
    """Return a value for a variable of a page or of the code."""
    return "some-project" if "project" in name.lower() else "1"


def _until_end(text: str) -> str:
    """Return the command at the beginning of a text."""
    quote = ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "\n`);|&" or text.startswith(" #", index):
            return " ".join(text[:index].split())
    return " ".join(text.split())


def texts_of(node: ast.AST, names: Mapping[str, str] = _NO_NAMES) -> Iterator[str]:
    """Yield the texts of code, each whole, with values filled in.

    Args:
        node: a module or a part of one.
        names: texts that code around the part gives to names.
    """
    known = dict(names)
    if isinstance(node, ast.Module | ast.FunctionDef):
        for statement in node.body if isinstance(node, ast.Module) else ast.walk(node):
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                text = _rendered(statement.value, known)
                if text is not None:
                    known[statement.targets[0].id] = text
    text = _rendered(node, known)
    if text is not None:
        yield text
        return
    for child in ast.iter_child_nodes(node):
        yield from texts_of(child, known)


def _rendered(node: ast.AST, names: Mapping[str, str]) -> str | None:
    """Return a text of the code with its values filled; None for other code."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_part(part, names) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first = _rendered(left, names)
            second = _rendered(right, names)
            return None if first is None or second is None else first + second
        case _:
            return None


def _part(part: ast.expr, names: Mapping[str, str]) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    name = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
    return names.get(name, _value(name))
