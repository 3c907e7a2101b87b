"""YAML documents of settings: plain values with lines, and no more of YAML than settings need.

Pulumi reads the same text with another library. What the two read differently is refused, and so is
what only one of them can read: tags, numbers such as 010 and .nan, and anchors that contain
themselves.
"""

import math
import re
from collections.abc import Mapping
from itertools import chain
from string import Template
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scalarbool import ScalarBoolean

from berth.components.core.errors import BadInputError
from berth.components.core.printable import first_unsafe_character, printable

DEEPEST = 50
_MOST_VALUES = 100_000
_MOST_DIGITS = 18
_LONGEST_SHOWN = 40
_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}"
    for kind in ("bool", "float", "int", "map", "merge", "null", "seq", "str", "timestamp")
)
_UNREADABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Control characters, and halves of characters, which no text of Kubernetes can have."""


class DocumentError(BadInputError):
    """Text that is not the YAML of settings.

    Args:
        problem: what is wrong, and after a semicolon what fixes it.
        line: line of the text, from 1; 0 for none.
    """

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.line = line


class _Constructor(RoundTripConstructor):
    """Constructor that checks all nodes before it makes a value of any."""

    def get_single_data(self) -> Any:
        node = self.composer.get_single_node()
        if node is None:
            return None
        _measure(node, {})
        return self.construct_document(node)

    def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - ruamel's signature
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ConstructorError(
                None, None, f"{_shown(node)} has no value: {error}", node.start_mark
            ) from None


_WRONG_INDENT = "is indented neither like the entry above it nor like one inside that entry"

_BY_CONTEXT: Mapping[str, str] = {
    "quoted scalar": "begins a text with a quote that nothing closes",
    "simple key": "has no ':' with a blank behind it, so that it is no entry",
    "flow sequence": "begins a '[' that nothing closes, or lacks a ',' before line $line",
    "flow": "begins a '{' that nothing closes, or lacks a ',' before line $line",
}
"""Meaning of the parser's errors by words of their context, at the line where the context begins;
`$line` is the line of the problem."""

_BY_PROBLEM: Mapping[str, str] = {
    r"found undefined alias '(.*)'": (
        r"has *\1, and no &\1 that it refers to; put a text with '*' in quotes"
    ),
    r"found character '(.)' that cannot start": (
        r"has a value that begins with '\1', which YAML keeps for itself; put it in quotes"
    ),
    r"<block end>, but found '<block mapping start>'": _WRONG_INDENT,
    r"<block end>, but found '\?'": _WRONG_INDENT,
    r"<block end>, but found '-'": _WRONG_INDENT,
    r"mapping values are not allowed": (
        "has a ':' that makes no entry: it is indented too far, a value needs quotes, or the line"
        " above lacks a blank after its ':'"
    ),
    r"found character '\\t'": "is indented by a tab; YAML takes spaces",
}
"""Meaning of the parser's errors by regular expressions of their problems, at their lines; `\\1` is
the expression's group."""


def read_yaml(text: str) -> Any:
    """Return a document; its mappings and lists know the lines of their entries.

    Raises:
        DocumentError: the text is not one document of the YAML that settings need.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    # A comment ends at such a character for one reader and goes on for the other, or for the eye.
    if found := first_unsafe_character(text):
        line = text.count("\n", 0, found.start()) + 1
        raise DocumentError(
            f"has the character {printable(found[0])}, which a reader of YAML or an editor may take"
            " for the end of a line, or hide; take it out",
            line,
        )
    yaml = YAML(typ="rt", pure=True)
    yaml.Constructor = _Constructor
    yaml.max_depth = DEEPEST
    try:
        return yaml.load(text)
    except MaxDepthExceededError as error:
        raise DocumentError(
            f"is nested more than {DEEPEST} levels deep; write it with fewer",
            error.problem_mark.line + 1,
        ) from None
    except MarkedYAMLError as error:
        raise _in_words(error) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DocumentError(
            f"is not YAML: it has the character {chr(error.character)!r}; take it out", line
        ) from None
    except YAMLError as error:
        raise DocumentError(f"is not YAML: {error}; correct the YAML") from None


def _in_words(error: MarkedYAMLError) -> DocumentError:
    """Return the parser's error in words, at the line where something is to be put right."""
    line = error.problem_mark.line + 1 if error.problem_mark else 0
    if error.context_mark:
        for words, text in _BY_CONTEXT.items():
            if words in (error.context or ""):
                meaning = Template(text).substitute(line=line)
                return DocumentError(meaning, error.context_mark.line + 1)
    problem = (error.problem or "is not YAML").replace("\n", " ")
    for expression, text in _BY_PROBLEM.items():
        if match := re.search(expression, problem):
            return DocumentError(match.expand(text), line)
    return DocumentError(problem, line)


def plain_value(value: Any) -> Any:
    """Return a value of a document without the spelling and the lines that it remembers."""
    if isinstance(value, CommentedMap):
        return {plain_value(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, CommentedSeq):
        return [plain_value(inner) for inner in value]
    if isinstance(value, TaggedScalar):
        return str(value.value)  # of `!!str`, the only tag whose scalars are kept so
    if isinstance(value, ScalarBoolean):
        return bool(value)
    for kind in (str, int, float):
        if isinstance(value, kind) and not isinstance(value, bool):
            return kind(value)
    return value


def _measure(node: Node, known: dict[int, int | None]) -> int:
    """Return the number of values in a node, a node once for each alias of it."""
    line = node.start_mark.line + 1
    if id(node) in known:
        size = known[id(node)]
        if size is None:
            raise DocumentError(
                "has an anchor that contains itself; take the alias out of the anchor", line
            )
        return size
    known[id(node)] = None
    _check(node, line)
    if isinstance(node, MappingNode):
        inner = list(chain.from_iterable(node.value))
    else:
        inner = [] if isinstance(node, ScalarNode) else list(node.value)
    size = 1 + sum(_measure(part, known) for part in inner)
    if size > _MOST_VALUES:
        raise DocumentError(
            f"has more than {_MOST_VALUES} values once its anchors are resolved; write the values"
            " that are needed in place of the anchors",
            line,
        )
    known[id(node)] = size
    return size


def _check(node: Node, line: int) -> None:
    tag = str(node.tag)
    if tag not in _TAGS:
        raise DocumentError(f"has the tag {tag!r}, which settings do not have; take it out", line)
    if isinstance(node, MappingNode):
        for key, _ in node.value:
            if not isinstance(key, ScalarNode):
                raise DocumentError(
                    "has a mapping or list as a key; write a name", key.start_mark.line + 1
                )
    if not isinstance(node, ScalarNode):
        return
    if found := _UNREADABLE.search(node.value):
        raise DocumentError(
            f"has the character {found[0]!r}, which settings cannot have; take it out", line
        )
    kind = tag.rpartition(":")[2]
    if kind == "int" and re.fullmatch(r"[-+]?0[\d_]+", node.value):
        message = (
            f"{_shown(node)} is another number for Pulumi, because of its leading 0; take the 0"
            " out, or quote it"
        )
        raise DocumentError(message, line)
    if kind == "int" and len(node.value) > _MOST_DIGITS:
        raise DocumentError(
            f"{_shown(node)} has more digits than a number of Pulumi; quote it if it is text", line
        )
    if kind == "float" and not _finite(node.value):
        raise DocumentError(
            f"{_shown(node)} is not a number that Pulumi can pass on; quote it if it is text", line
        )


def _finite(text: str) -> bool:
    try:
        return math.isfinite(
            float(text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
        )
    except ValueError:
        return True  # a spelling of YAML that the constructor reads, or refuses


def _shown(node: Node) -> str:
    text = str(node.value)
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")
