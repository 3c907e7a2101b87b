"""Edits of a stack's file by ruamel's round trip, which keeps comments, order and quotes."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import SEEK_END, StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.tokens import CommentToken

from berth.components.core import whole_file
from berth.components.core.errors import BadInputError
from berth.components.core.project import shown_path

Keys = Sequence[str]
_MARK = "\ufeff"
_BY_HAND = "edit the file by hand"
_INDENTED = re.compile(r"^( +)[^\s#-]", flags=re.MULTILINE)
_LIST = re.compile(r"^( *)[^\s#-][^#\n]*:[^\n]*\n( *)- ", flags=re.MULTILINE)


@dataclass(frozen=True)
class FileEdit:
    """Text of a stack's file before and after an edit."""

    path: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change for people."""
        name = shown_path(self.path)
        before = self.before.splitlines(keepends=True)
        after = self.after.splitlines(keepends=True)
        lines = difflib.unified_diff(before, after, name, name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """Replace the file in one step, with the mode and the line breaks that it has."""
        ends = "\r\n" if self.path.exists() and b"\r\n" in self.path.read_bytes() else "\n"
        whole_file.replace_file(self.path, self.after, newline=ends)


def with_entry(text: str, keys: Keys, name: str, entry: Any) -> str:
    """Return the text with an entry added at the end of the mapping that keys lead to.

    The last key is added where it is missing.

    Raises:
        BadInputError: the keys lead to no mapping, or it has the entry already.
    """
    yaml = _yaml(text)
    document = yaml.load(text)
    *above, last = keys
    parent = _mapping(document, above)
    behind = _taken_comment(parent) if parent.get(last) is None else ""
    if not parent.get(last):
        parent[last] = CommentedMap()
    mapping = _mapping(document, keys)
    if name in mapping:
        raise BadInputError(f"{'.'.join(keys)}.{name} exists already; {_BY_HAND}")
    behind = behind or _taken_comment(mapping)
    mapping[name] = _inline(entry)
    _put_behind(mapping, name, behind)
    return _dumped(yaml, document, text)


def without_entry(text: str, keys: Keys, name: str) -> str:
    """Return the text without an entry of a mapping, which stays, if empty.

    Raises:
        BadInputError: the keys lead to no mapping, or it lacks the entry.
    """
    yaml = _yaml(text)
    document = yaml.load(text)
    mapping = _mapping(document, keys)
    if name not in mapping:
        raise BadInputError(f"there is no {'.'.join(keys)}.{name}; {_BY_HAND}")
    names = list(mapping)
    number = names.index(name)
    behind = _taken_comment(mapping, name)
    del mapping[name]
    if number:
        _put_behind(mapping, names[number - 1], _taken_comment(mapping, names[number - 1]) + behind)
    elif mapping:
        _put_before(mapping, names[1], behind)
    else:
        parent = _mapping(document, keys[:-1])
        # Another mapping, which does not write its first comment a second time.
        parent[keys[-1]] = _inline({})
        _put_behind(parent, keys[-1], behind)
    return _dumped(yaml, document, text)


def _yaml(text: str) -> YAML:
    """Return a reader and writer with the indentation of a text."""
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 10_000
    step = min((len(found) for found in _INDENTED.findall(text)), default=2)
    lists = [len(item) - len(key) for key, item in _LIST.findall(text)]
    offset = max(min(lists, default=step), 0)
    yaml.indent(mapping=step, sequence=offset + 2, offset=offset)
    return yaml


def _dumped(yaml: YAML, document: Any, before: str) -> str:
    stream = StringIO(before[:1] if before.startswith(_MARK) else "")
    stream.seek(0, SEEK_END)
    yaml.dump(document, stream)
    return stream.getvalue()


def _mapping(document: Any, keys: Keys) -> CommentedMap:
    for depth, key in enumerate(keys, start=1):
        if not isinstance(document, CommentedMap) or document.get(key) is None:
            raise BadInputError(f"there is no {'.'.join(keys[:depth])}; {_BY_HAND}")
        document = document[key]
    if not isinstance(document, CommentedMap):
        raise BadInputError(f"{'.'.join(keys)} is not a mapping; {_BY_HAND}")
    return document


def _inline(value: Any) -> Any:
    """Return a value that is written on one line: `{workers: 2, worker: {gpus: 1}}`."""
    if not isinstance(value, dict):
        return value
    mapping = CommentedMap({key: _inline(inner) for key, inner in value.items()})
    mapping.fa.set_flow_style()
    return mapping


def _place(holder: Any, key: Any) -> tuple[Any, Any, int]:
    """Return where ruamel keeps the comment behind an entry: at its last value, however deep."""
    value = holder[key]
    if isinstance(value, CommentedMap | CommentedSeq) and value and not value.fa.flow_style():
        return _place(value, list(value)[-1] if isinstance(value, CommentedMap) else len(value) - 1)
    return holder, key, 2 if isinstance(holder, CommentedMap) else 0


def _taken_comment(mapping: CommentedMap, name: str | None = None) -> str:
    """Take away the lines of comment behind an entry, which ruamel keeps with it; return them."""
    if not mapping:
        return ""
    holder, key, index = _place(mapping, list(mapping)[-1] if name is None else name)
    tokens = holder.ca.items.get(key)
    if not tokens or tokens[index] is None:
        return ""
    own, _, behind = tokens[index].value.partition("\n")
    tokens[index] = CommentToken(f"{own}\n", tokens[index].start_mark) if own else None
    return str(behind)


def _put_behind(mapping: CommentedMap, name: str, lines: str) -> None:
    if not lines:
        return
    holder, key, index = _place(mapping, name)
    tokens = holder.ca.items.setdefault(key, [None] * 4)
    own = tokens[index].value.partition("\n")[0] if tokens[index] else ""
    mark = tokens[index].start_mark if tokens[index] else CommentMark(0)
    tokens[index] = CommentToken(f"{own}\n{lines}", mark)


def _put_before(mapping: CommentedMap, name: str, lines: str) -> None:
    tokens = mapping.ca.items.setdefault(name, [None] * 4)
    added = [
        CommentToken(f"{line.strip()}\n", CommentMark(len(line) - len(line.lstrip())))
        for line in lines.splitlines()
    ]
    tokens[1] = [*added, *(tokens[1] or [])]
