"""Files of stacks: shipped ones with edits of their settings, and with edits of their text."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from hypothesis import strategies as st

from berth.lab.home import CLONE
from tests.fuzz.values import LONG, ODD, Node, fitting, forms, hostile, resolved, schema, texts

MORE = CLONE / "tests/fuzz/stacks"
Path = tuple[str | int, ...]


def shipped() -> dict[str, str]:
    """Return the text of each shipped stack, and of two more kinds, by the stack's name."""
    folders = (CLONE / "stacks", CLONE / "stacks" / "gallery")
    files = [
        file
        for folder in folders
        for file in sorted(folder.glob("Pulumi.*.yaml"))
        if "real" not in file.name
    ]
    found = {file.name.split(".")[1]: file.read_text(encoding="utf-8") for file in files}
    return found | {
        file.stem: file.read_text(encoding="utf-8") for file in sorted(MORE.glob("*.yaml"))
    }


def settings_of(text: str) -> Any:
    return yaml.safe_load(text)


def written(document: Any) -> str:
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=10_000)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value inside a document."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in inner:
        yield (*path, key)
        yield from paths(part, (*path, key))


def _at(document: Any, path: Path) -> Any:
    for part in path:
        document = document[part]
    return document


def node_of(path: Path) -> Node | None:
    """Return the schema's node of a setting; None where the schema has none."""
    node: Node = schema()
    for part in path:
        node = resolved(node)
        found: Node | None = None
        for form in forms(node):
            inner = (
                form.get("items") if isinstance(part, int) else form.get("properties", {}).get(part)
            )
            inner = inner or (
                form.get("additionalProperties") if not isinstance(part, int) else None
            )
            if isinstance(inner, dict):
                found = inner
                break
        if found is None:
            return None
        node = found
    return node


@st.composite
def edited(draw: st.DrawFn, *, good: bool = False) -> tuple[str, str]:
    """Return a stack's name and its text with up to three settings edited.

    Args:
        draw: hypothesis's choice of a value.
        good: mostly add settings that the schema takes, so that the result is likely accepted.
    """
    stacks = shipped()
    stack = draw(st.sampled_from(sorted(stacks)))
    document = settings_of(stacks[stack])
    for _ in range(draw(st.integers(1, 3))):
        # A drawn value is the schema's own example: an edit inside it would change later draws.
        document = copy.deepcopy(document)
        edits = (
            [_add_fitting, _add_text]
            if good
            else [_add_fitting, _replace, _replace, _delete, _rename, _add, _repeat]
        )
        draw(st.sampled_from(edits))(draw, document)
    return stack, written(document)


def _choice(
    draw: st.DrawFn, document: Any, fits: Callable[[Any], bool] = lambda _: True
) -> Path | None:
    found = [path for path in paths(document) if len(path) > 1 and fits(_at(document, path))]
    return draw(st.sampled_from(found)) if found else None


def _replace(draw: st.DrawFn, document: Any) -> None:
    if path := _choice(draw, document):
        _at(document, path[:-1])[path[-1]] = draw(hostile())


def _delete(draw: st.DrawFn, document: Any) -> None:
    if path := _choice(draw, document):
        del _at(document, path[:-1])[path[-1]]


def _rename(draw: st.DrawFn, document: Any) -> None:
    path = _choice(draw, document)
    holder = _at(document, path[:-1]) if path else None
    if path and isinstance(holder, dict):
        name = str(path[-1])
        key = draw(
            st.sampled_from([name[:-1], name.upper(), f"{name}s", name.replace("e", "3"), LONG])
            | texts()
        )
        holder[key] = holder.pop(path[-1])


def _add(draw: st.DrawFn, document: Any) -> None:
    if path := _choice(draw, document, lambda value: isinstance(value, dict)):
        _at(document, path)[draw(texts() | st.integers(0, 3))] = draw(hostile())


def _repeat(draw: st.DrawFn, document: Any) -> None:
    if path := _choice(draw, document, lambda value: isinstance(value, list)):
        _at(document, path).extend(copy.deepcopy(_at(document, path)))


def _add_fitting(draw: st.DrawFn, document: Any) -> None:
    """Set a setting to a value that the schema takes there."""
    path = _choice(draw, document, lambda value: isinstance(value, dict))
    node = node_of(path) if path else None
    if path and node:
        properties = {
            key: part for form in forms(node) for key, part in form.get("properties", {}).items()
        }
        if properties:
            key = draw(st.sampled_from(sorted(properties)))
            _at(document, path)[key] = draw(fitting(properties[key]))


def _add_text(draw: st.DrawFn, document: Any) -> None:
    """Set a setting that takes any text, or a mapping or list of texts, to odd ones."""
    path = _choice(draw, document, lambda value: isinstance(value, dict))
    node = node_of(path) if path else None
    properties = (
        {key: part for form in forms(node) for key, part in form.get("properties", {}).items()}
        if node
        else {}
    )
    found = {key: values for key, part in properties.items() if (values := _free(part)) is not None}
    if path and found:
        key = draw(st.sampled_from(sorted(found)))
        _at(document, path)[key] = draw(found[key])


def _free(node: Node) -> st.SearchStrategy[Any] | None:
    for form in forms(node):
        inner = form.get("items") or form.get("additionalProperties")
        free = forms(inner) if isinstance(inner, dict) else [form]
        if not any(
            part.get("type") == "string" and "enum" not in part and "pattern" not in part
            for part in free
        ):
            continue
        if form["type"] == "object":
            return st.dictionaries(texts(), texts(), min_size=1, max_size=2)
        return st.lists(texts(), min_size=1, max_size=2) if form["type"] == "array" else texts()
    return None


SNIPPETS = [
    *(text.encode("latin-1") for text in ODD["snippets"]),
    *(b"[" * 5000, b"{a: " * 200, b"- " * 300, b"9" * 5000, LONG.encode()),
]


@st.composite
def torn(draw: st.DrawFn) -> tuple[str, bytes]:
    """Return a stack's name and its text with snippets in odd places, or lines lost or repeated."""
    stacks = shipped()
    stack = draw(st.sampled_from(sorted(stacks)))
    data = stacks[stack].encode()
    for _ in range(draw(st.integers(1, 3))):
        lines = data.splitlines(keepends=True)
        at = draw(st.integers(0, len(lines) - 1)) if lines else 0
        kind = draw(
            st.sampled_from(
                ["insert", "insert", "value", "value", "lose", "repeat", "indent", "cut", "ends"]
            )
        )
        if kind == "insert":
            place = draw(st.integers(0, len(data)))
            data = data[:place] + draw(st.sampled_from(SNIPPETS)) + data[place:]
        elif kind == "ends":
            data = data.replace(
                b"\n", draw(st.sampled_from([b"\r\n", b"\r", b"\n\n", b"\n\t", b"\xc2\x85"]))
            )
        elif kind == "cut":
            data = data[: draw(st.integers(0, len(data)))]
        elif lines:
            data = b"".join([*lines[:at], *_line(draw, kind, lines[at]), *lines[at + 1 :]])
    return stack, data


def _line(draw: st.DrawFn, kind: str, line: bytes) -> list[bytes]:
    if kind == "lose":
        return []
    if kind == "repeat":
        return [line, line]
    if kind == "indent":
        return [b" " * draw(st.integers(0, 8)) + line.lstrip(b" ")]
    key, mark, value = line.partition(b": ")
    snippet = draw(st.sampled_from(SNIPPETS))
    return [key + mark + snippet + (value if draw(st.booleans()) else b"\n")]
