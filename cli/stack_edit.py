"""Edits of a stack's file that leave the rest of it as it is, byte for byte: text in, text out.

A YAML library that loads and writes a file keeps its comments, but neither indentation nor line
breaks. Here the library only finds positions; the edit changes the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from berth.components.core.errors import BadInputError

Keys = Sequence[str]
_BY_HAND = "edit the file by hand"


@dataclass(frozen=True)
class _Entry:
    """Nodes of a key and its value, with their offsets in the text."""

    key: Node
    value: Node

    @property
    def start(self) -> int:
        """Offset of the key."""
        return int(self.key.start_mark.index)


def with_value(text: str, keys: Keys, value: Any) -> str:
    """Return the text with another value of a setting, which is added where it is missing.

    Raises:
        BadInputError: the file has something else in the setting's place.
    """
    node: Node = _mapping(text, ())
    for depth, key in enumerate(keys):
        found = _entry(node, key) if isinstance(node, MappingNode) else None
        if found is None or _is_null(found.value):
            # `with_entry` adds the last key above an entry itself.
            above = max(depth + (found is not None), 1)
            name, *rest = keys[above:] if above < len(keys) else keys[-1:]
            return with_entry(text, keys[: min(above, len(keys) - 1)], name, _nested(rest, value))
        node = found.value
    if not isinstance(node, ScalarNode):
        raise BadInputError(f"{'.'.join(keys)} is not one value; {_BY_HAND}")
    return f"{text[: node.start_mark.index]}{_inline(value)}{text[_content_end(node) :]}"


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and str(node.tag).endswith("null")


def _nested(keys: Keys, value: Any) -> Any:
    """Return a value below keys."""
    for key in reversed(keys):
        value = {key: value}
    return value


def with_entry(text: str, keys: Keys, name: str, entry: Any) -> str:
    """Return the text with an entry added at the end of the mapping that keys lead to.

    The last key is added where it is missing.

    Raises:
        BadInputError: there is no such mapping, or the entry exists already.
    """
    *above, last = keys
    parent = _mapping(text, above)
    found = _entry(parent, last)
    line = f"{_inline(name)}: {_inline(entry)}"
    if found is None:
        if parent.flow_style:
            raise BadInputError(f"{'.'.join(above)} is written in braces; give each key its own line; {_BY_HAND}")
        return _after(text, parent, f"{last}:", line)
    mapping = found.value
    if isinstance(mapping, ScalarNode) and str(mapping.tag).endswith("null"):
        return _in_place_of(text, found, line)
    if not isinstance(mapping, MappingNode):
        raise BadInputError(f"{'.'.join(keys)} is not a mapping; {_BY_HAND}")
    if _entry(mapping, name):
        raise BadInputError(f"{'.'.join(keys)}.{name} exists already; {_BY_HAND}")
    if not mapping.value:
        return _in_place_of(text, found, line)
    if mapping.flow_style:
        end = _content_end(mapping.value[-1][1], mapping.value[-1][0])
        return f"{text[:end]}, {line}{text[end:]}"
    return _after(text, mapping, line)


def without_entry(text: str, keys: Keys, name: str) -> str:
    """Return the text without an entry of a mapping, which stays, if empty.

    Raises:
        BadInputError: there is no such entry.
    """
    *above, last = keys
    holder = _entry(_mapping(text, above), last)
    if holder is None or not isinstance(holder.value, MappingNode):
        raise BadInputError(f"{'.'.join(keys)} is not a mapping; {_BY_HAND}")
    entries = [_Entry(key, value) for key, value in holder.value.value]
    number = next((at for at, entry in enumerate(entries) if entry.key.value == name), None)
    if number is None:
        raise BadInputError(f"there is no {'.'.join(keys)}.{name}; {_BY_HAND}")
    gone = entries[number]
    if len(entries) == 1:
        return _emptied(text, holder)
    if holder.value.flow_style:
        if number + 1 < len(entries):
            return text[: gone.start] + text[entries[number + 1].start :]
        before = entries[number - 1]
        return text[: _content_end(before.value, before.key)] + text[_content_end(gone.value, gone.key) :]
    return text[: _line_start(text, gone.start)] + text[_line_end(text, _content_end(gone.value, gone.key)) :]


def _mapping(text: str, keys: Keys) -> MappingNode:
    """Return the mapping that keys lead to.

    Raises:
        BadInputError: there is none.
    """
    node = YAML(typ="rt", pure=True).compose(StringIO(text))
    for key in keys:
        found = _entry(node, key) if isinstance(node, MappingNode) else None
        if found is None:
            raise BadInputError(f"there is no {'.'.join(keys)}; {_BY_HAND}")
        node = found.value
    if not isinstance(node, MappingNode):
        raise BadInputError(f"{'.'.join(keys)} is not a mapping; {_BY_HAND}")
    return node


def _entry(mapping: MappingNode, name: str) -> _Entry | None:
    return next((_Entry(key, value) for key, value in mapping.value if key.value == name), None)


def _content_end(node: Node, key: Node | None = None) -> int:
    """Return where a value's text ends: a block's end mark lies behind later comments."""
    if key is not None and node.start_mark.index == node.end_mark.index:
        # An absent value, whose marks stand where the next one begins.
        return int(key.end_mark.index) + 1
    if not isinstance(node, CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _content_end(last[1], last[0]) if isinstance(last, tuple) else _content_end(last)


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _line_end(text: str, index: int) -> int:
    """Return the offset behind a line's break; a block scalar ends there already."""
    if index and text[index - 1] == "\n":
        return index
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1


def _after(text: str, mapping: MappingNode, *lines: str) -> str:
    """Return the text with lines behind a mapping's last entry, each indented more."""
    key, value = mapping.value[-1]
    end = _line_end(text, _content_end(value, key))
    column = int(mapping.value[0][0].start_mark.column)
    break_ = "" if not end or text[end - 1] == "\n" else "\n"
    added = "".join(f"{' ' * (column + _step(mapping, column) * depth)}{line}\n" for depth, line in enumerate(lines))
    return f"{text[:end]}{break_}{added}{text[end:]}"


def _step(mapping: MappingNode, column: int) -> int:
    """Return the file's indentation, as far as a mapping's own entries show it."""
    for _, value in mapping.value:
        if isinstance(value, MappingNode) and not value.flow_style and value.value:
            return int(value.value[0][0].start_mark.column) - column
    return 2


def _in_place_of(text: str, holder: _Entry, line: str) -> str:
    """Return the text with an entry below a key without a value, such as `engineers: {}`."""
    key_end = int(holder.key.end_mark.index) + 1
    value_end = _content_end(holder.value, holder.key)
    rest_end = _line_end(text, value_end)
    behind = text[value_end:rest_end].rstrip("\n")
    column = int(holder.key.start_mark.column) + 2
    return f"{text[:key_end]}{behind}\n{' ' * column}{line}\n{text[rest_end:]}"


def _emptied(text: str, holder: _Entry) -> str:
    """Return the text without the only entry of a mapping: `engineers: {}`."""
    key_end = int(holder.key.end_mark.index) + 1
    end = _content_end(holder.value, holder.key)
    if not isinstance(holder.value, MappingNode) or holder.value.flow_style:
        return f"{text[:key_end]} {{}}{text[end:]}"
    key, value = holder.value.value[0]
    first, last = _line_start(text, int(key.start_mark.index)), _line_end(text, _content_end(value, key))
    return f"{text[:key_end]} {{}}{text[key_end:first]}{text[last:]}"


def _inline(value: Any) -> str:
    """Return a value on one line: `{workers: 2, worker: {gpus: 1}}`."""
    yaml = YAML(typ="rt", pure=True)
    yaml.width = 10_000
    stream = StringIO()
    yaml.dump(_flow(value), stream)
    return stream.getvalue().removesuffix("...\n").strip()


def _flow(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    mapping = CommentedMap({key: _flow(inner) for key, inner in value.items()})
    mapping.fa.set_flow_style()
    return mapping
