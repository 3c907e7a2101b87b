"""Errors with their remedies, read from the sources: a page of the site that its search finds."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path

from berth.components.core.errors import BAD_INPUT, FAILED
from berth.components.core.rules import all_rules
from berth.lab.home import CLONE

FOLDERS = ("cli", "stacks", "components")

_NO_TEXTS: Mapping[str, str] = {}
_BAD_INPUT = {
    "BadInputError",
    "NotUpError",
    "UnknownStackError",
    "KubeconfigError",
    "StackFileError",
    "DocumentError",
}
_FAILED = {
    "BerthError",
    "NotPreparedError",
    "ClusterError",
    "DefinitionsError",
    "GoogleError",
    "RunError",
}
_EXPLAIN = "Correct the value in the named line. `berth explain` shows what the setting takes."


@dataclass(frozen=True)
class Message:
    """Message of an error in the code.

    Attributes:
        text: what is wrong, with `…` for values.
        remedy: what to do; empty if the error does not say it.
        code: exit code.
        file: path of the module.
    """

    text: str
    remedy: str
    code: int
    file: str


@cache
def errors() -> tuple[Message, ...]:
    """Return the messages of all errors that end a command, each once."""
    return _once(_raised(file, tree) for file, tree in _modules())


@cache
def problems() -> tuple[Message, ...]:
    """Return the messages of all problems across settings, each once."""
    in_code = (_problems(file, tree) for file, tree in _modules())
    return _once(chain(in_code, [_of_rules()]))


def _of_rules() -> Iterator[Message]:
    """Yield the messages of the rules of settings, from the sources of their functions."""
    importlib.import_module("berth.stacks.load.stack")  # imports the rules of all slices
    for rule in all_rules():
        file = Path(inspect.getfile(rule.judge)).resolve().relative_to(CLONE)
        function = ast.parse(textwrap.dedent(inspect.getsource(rule.judge)))
        for text in filter(None, map(_message_of_rule, ast.walk(function))):
            message = _message(text, "", BAD_INPUT, str(file))
            yield message if message.remedy else replace(message, remedy=_EXPLAIN)


def _message_of_rule(node: ast.AST) -> str:
    """Return the message in a rule's `return` or `Breach(...)`; empty for other code."""
    if isinstance(node, ast.Return) and node.value is not None:
        text = template(node.value)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Breach":
        text = template(node.args[0])
    else:
        return ""
    return text if text.strip("… ") else ""


def _once(found: Iterable[Iterator[Message]]) -> tuple[Message, ...]:
    by_text: dict[str, Message] = {}
    for message in (message for messages in found for message in messages):
        by_text.setdefault(message.text, message)
    return tuple(by_text.values())


@cache
def _modules() -> tuple[tuple[str, ast.Module], ...]:
    files = (file for folder in FOLDERS for file in sorted((CLONE / folder).rglob("*.py")))
    return tuple(
        (str(file.relative_to(CLONE)), ast.parse(file.read_text(encoding="utf-8")))
        for file in files
        if not {"gallery", "programs", "template"} & set(file.relative_to(CLONE).parts)
    )


def _raised(file: str, tree: ast.Module) -> Iterator[Message]:
    constants = _texts_of_names(tree.body)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            texts = constants | _texts_of_names(ast.walk(function))
            for node in ast.walk(function):
                message = _message_of_error(node, texts, file)
                if message:
                    yield message


def _texts_of_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the texts that code gives to names, such as `remedy`, by the name."""
    texts: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts[node.targets[0].id] = template(node.value)
    return texts


def _message_of_error(node: ast.AST, texts: Mapping[str, str], file: str) -> Message | None:
    """Return the message of an error that a statement raises or returns; None for other code."""
    error = _error_of(node)
    if not isinstance(error, ast.Call):
        return None
    name = ast.unparse(error.func).rpartition(".")[2]
    if isinstance(node, ast.Return) and name == "GoogleError":
        return None  # an answer of Google's, with Google's own text
    arguments = error.args[1:] if name == "GoogleError" else error.args
    if name not in _BAD_INPUT | _FAILED or not arguments:
        return None
    text = template(arguments[0], texts)
    if not text.strip("… "):
        return None  # another program's text
    remedy = template(arguments[1], texts) if len(arguments) > 1 else ""
    return _message(text, remedy, BAD_INPUT if name in _BAD_INPUT else FAILED, file)


def _error_of(node: ast.AST) -> ast.expr | None:
    """Return the error that a statement raises, or returns for its caller to raise."""
    if isinstance(node, ast.Raise):
        return node.exc
    return node.value if isinstance(node, ast.Return) else None


def _problems(file: str, tree: ast.Module) -> Iterator[Message]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "Problem"
            and len(node.args) > 1
        ):
            text = template(node.args[1])
            if text.strip("… "):
                found = _message(text, "", BAD_INPUT, file)
                yield found if found.remedy else replace(found, remedy=_EXPLAIN)


def _message(text: str, written: str, code: int, file: str) -> Message:
    problem, _, rest = text.partition("; ")
    return Message(
        problem if rest and not written else text, _sentence(written or rest), code, file
    )


def _sentence(text: str) -> str:
    """Return a remedy as a sentence; a command stays as it is written."""
    first = text if text.startswith("berth ") else f"{text[:1].upper()}{text[1:]}"
    return first if not first or first.endswith((".", "…", ")", "?")) else f"{first}."


def template(node: ast.expr, texts: Mapping[str, str] = _NO_TEXTS) -> str:
    """Return a text of the code with `…` for each value; empty for an expression.

    Args:
        node: the expression.
        texts: texts of the names that the expression may use.
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return texts.get(name, "")
        case ast.JoinedStr(values=values):
            text = "".join(_template_of_part(part, texts) for part in values)
            return re.sub("… ?…", "…", text)
        case ast.BinOp(left=left, right=right):
            return template(left, texts) + template(right, texts)
        case ast.BoolOp(values=[first, *_]):
            return template(first, texts)
        case ast.IfExp(body=body, orelse=other):
            return template(body, texts) or template(other, texts)
        case ast.Call(func=ast.Name(id="did_you_mean")):
            return "; did you mean …?"
        case _:
            return ""


def _template_of_part(part: ast.expr, texts: Mapping[str, str]) -> str:
    """Return a part of an f-string, of whose values only hints are texts."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    hint = template(part.value, texts) if isinstance(part, ast.FormattedValue) else ""
    return hint if hint.startswith("; ") else "…"


_HEAD = f"""\
# Errors

An error says what is wrong, what would happen and what to do, and ends the command with an exit
code: {BAD_INPUT} for wrong input, before anything is changed, and {FAILED} for a failure on the
way. `…` stands for values. The site's search finds this page, which is written from the code.
[Troubleshooting](troubleshooting.md) begins at symptoms.

Settings that break a policy have their remedies in [Policies](policies.md). Errors of Google Cloud
come with advice beside Google's own text, and `berth doctor -s STACK` finds most of them before an
update.

## Errors of commands
"""
_SETTINGS = """\
## Problems across settings

`berth check`, `berth preview` and `pulumi up` report these with file, line and setting, all at
once. Beside them, each value is checked by itself: `unknown key`, `is required`, `is not one of`;
then `berth explain` shows what the setting takes.
"""


def page() -> str:
    """Return the page's text."""
    rows = [f"| {_cell(found.text)} | {_cell(found.remedy)} | {found.code} |" for found in errors()]
    commands = ["| error | remedy | exit code |", "|---|---|---|", *rows, ""]
    parts = [_HEAD, "\n".join(commands), _SETTINGS]
    for area, messages in _areas().items():
        rows = [f"| {_cell(found.text)} | {_cell(found.remedy)} |" for found in messages]
        parts.append("\n".join([f"### {area}", "", "| problem | remedy |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def _areas() -> dict[str, list[Message]]:
    """Return the problems of settings by the folder that reports them."""
    found: dict[str, list[Message]] = {}
    for message in problems():
        folder, feature, *_ = Path(message.file).parts
        area = feature if folder == "components" else "stacks and environments"
        found.setdefault(area, []).append(message)
    return dict(sorted(found.items()))


def _cell(text: str) -> str:
    return (
        text.replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("*.py", "`*.py`")
        .replace("not https:", "not `https`:")
        .replace("\n", " ")
    )
