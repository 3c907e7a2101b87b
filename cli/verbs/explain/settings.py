"""Settings as `berth explain` and the reference show them, read from the JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.markup import escape

from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.words import names_in_words

EFFECTS = Path(__file__).with_name("effects.json")
"""Effect of an edit, by the setting's path: `make effects` writes it."""

_ENGINEER = "environment.engineers.ENGINEER."
SAME_AS_ENGINEERS = ("environment.defaults.", "environment.clusters.NAME.", "engineer.")
"""Paths whose settings have the same effect as those of an engineer on an environment."""
OF_GROUP = ".workerGroups.GROUP."
"""Part of paths whose settings have the same effect as `workers` and `worker`."""

Node = Mapping[str, Any]
"""A schema, or a part of one."""

_LONGEST_ENUM = 8
_PLAIN = re.compile(r"[\w./~][\w ./@~=-]*(:[\w./@~-]+)*")
_OTHER_TYPE = re.compile(
    r"[\d_]+(\.\d*)?|\d+(:\d+)+|\d+-\d+-\d+|true|false|null|yes|no|on|off|~", flags=re.IGNORECASE
)
"""Text that YAML reads as a value of another type unless it is quoted."""
_NEAR = 0.8
"""Likeness from which a word is a misspelled setting and not a name that a user chose."""
_KEY = {"engineers": "ENGINEER", "sharing": "PROFILE", "workerGroups": "GROUP"}
"""Placeholders of keys that users choose, by setting; of all others NAME."""


@dataclass(frozen=True)
class Setting:
    """A setting."""

    path: str
    """Dotted path, with placeholders for keys that users choose: `environment.pools.NAME.nodes`."""
    schema: Node
    """The whole schema, for references."""
    node: Node
    """The setting's own part of it."""
    required: bool = False

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def description(self) -> str:
        """First paragraph of the description of the setting, or of its type."""
        text = str(self.node.get("description") or self.resolved.get("description") or "")
        return text.partition("\n\n")[0].replace("\n", " ")

    @property
    def type(self) -> str:
        """Type in words: `integer | mapping`, `list of string`, `mapping of NAME`."""
        return _type(self.node, self.schema)

    @property
    def default(self) -> str:
        """Default in YAML's flow style; empty for none, and for a mapping or a list."""
        value = self.node.get("default")
        return "" if value is None or isinstance(value, dict | list) else flow(value)

    @property
    def example_values(self) -> list[Any]:
        """Example values: those of the declaration, else a value that is not the default."""
        forms = list(_forms(self.node, self.schema))
        for node in (self.node, *forms):
            if examples := node.get("examples"):
                return list(examples)
        return [value for value in self.choices if value != self.node.get("default")][
            :1
        ] or self.choices[:1]

    @property
    def examples(self) -> list[str]:
        """Example values in YAML's flow style."""
        return [flow(value) for value in self.example_values]

    @property
    def choices(self) -> list[Any]:
        """Values of a setting that has only a few; empty for any other."""
        found: list[Any] = []
        for form in _forms(self.node, self.schema):
            if form.get("type") == "boolean":
                found += [True, False]
            found += form.get("enum", [form["const"]] if "const" in form else [])
        return found

    @property
    def effect(self) -> str:
        """Effect of an edit in a phrase; empty for a setting that only holds others."""
        known = effects()["settings"]
        prefix = next(
            (prefix for prefix in SAME_AS_ENGINEERS if self.path.startswith(prefix)), None
        )
        path = self.path if prefix is None else f"{_ENGINEER}{self.path.removeprefix(prefix)}"
        of_worker = path.replace(f"{OF_GROUP}workers", ".workers").replace(OF_GROUP, ".worker.")
        return str(known.get(self.path) or known.get(path) or known.get(of_worker) or "")

    @property
    def meaning(self) -> str:
        """Meaning of the effect's most severe phrase."""
        return str(effects()["effects"].get(self.effect.rpartition(" or ")[2], ""))

    @cached_property
    def resolved(self) -> Node:
        """The setting's part of the schema, without references."""
        return _resolve(self.node, self.schema)

    def children(self) -> Iterator[Setting]:
        """Yield the settings inside this one, those of every form that it can take, each once."""
        seen = set()
        forms = list(_forms(self.node, self.schema))
        for form in forms:
            required = form.get("required", [])
            for name, node in form.get("properties", {}).items():
                if name not in seen:
                    seen.add(name)
                    path = f"{self.path}.{name}" if self.path else name
                    yield Setting(
                        path, self.schema, _chosen_by(node, name, forms), name in required
                    )
            value = form.get("additionalProperties")
            if isinstance(value, dict) and "" not in seen and any(_mappings(value, self.schema)):
                seen.add("")
                yield Setting(f"{self.path}.{_KEY.get(self.name, 'NAME')}", self.schema, value)
            if "items" in form and any(_mappings(form["items"], self.schema)):
                yield Setting(f"{self.path}[]", self.schema, form["items"])

    def document(self, *, recursive: bool = False) -> dict[str, Any]:
        """Return the setting as JSON shows it, with the paths or the documents of those inside."""
        return {
            "path": self.path,
            "type": self.type,
            "required": self.required,
            "default": self.node.get("default"),
            "description": self.description,
            "examples": self.example_values,
            "effect": self.effect,
            "fields": [
                child.document(recursive=True) if recursive else child.path
                for child in self.children()
            ],
        }


def sheet(setting: Setting, width: int) -> list[str]:
    """Return a setting and those directly inside it for a terminal, as marked-up lines."""
    lines = [f"[bold]{setting.path}[/]  {escape(setting.type)}"]
    lines += [f"  {label}: {escape(text)}" for label, text in _facts(setting) if text]
    if setting.meaning:
        lines += _filled(setting.meaning, width, 4)
    lines += ["", *_filled(setting.description, width, 2)] if setting.description else []
    children = list(setting.children())
    lines += ["", "[bold]Settings inside:[/]"] if children else []
    for child in children:
        required = " [bold]required[/]" if child.required else ""
        lines += ["", f"  [bold]{_inside(child, setting)}[/]  {escape(child.type)}{required}"]
        lines += _filled(child.description, width, 6) if child.description else []
        facts = "; ".join(f"{label}: {text}" for label, text in _facts(child) if text)
        lines += [f"[dim]{line}[/]" for line in _filled(facts, width, 6)] if facts else []
    return lines


def outline(setting: Setting) -> list[str]:
    """Return a setting and all settings inside it, one a line, as marked-up lines."""
    lines = [f"[bold]{setting.path}[/]  {escape(setting.type)}"]
    for child in everything(setting):
        if child is not setting:
            name = _inside(child, setting)
            marks = (
                " [bold]required[/]"
                if child.required
                else f", default {child.default}"
                if child.default
                else ""
            )
            gap = "  " * (name.count(".") + 1)
            lines.append(f"{gap}[bold]{name.rpartition('.')[2]}[/]  {escape(child.type)}{marks}")
    return lines


def _facts(setting: Setting) -> list[tuple[str, str]]:
    return [
        ("default", setting.default),
        ("for example", " or ".join(setting.examples)),
        ("an edit", setting.effect),
    ]


def _inside(child: Setting, setting: Setting) -> str:
    return child.path[len(setting.path) :].lstrip(".")


def _filled(text: str, width: int, indent: int) -> list[str]:
    """Return text in lines, with rich's markup escaped."""
    gap = " " * indent
    return [escape(line) for line in wrap(text, width, initial_indent=gap, subsequent_indent=gap)]


@cache
def effects() -> dict[str, dict[str, str]]:
    """Return the phrases with their meanings, and the phrase of each setting."""
    known: dict[str, dict[str, str]] = json.loads(EFFECTS.read_text(encoding="utf-8"))
    return known


def flow(value: Any) -> str:
    """Return a value in YAML's flow style, in one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {flow(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(flow(inner) for inner in value)}]"
    if isinstance(value, str):
        return (
            value
            if _PLAIN.fullmatch(value) and not _OTHER_TYPE.fullmatch(value)
            else json.dumps(value)
        )
    return json.dumps(value)


def roots(schema: Node) -> list[Setting]:
    """Return the settings of an environment and of an engineer's stack as a whole."""
    config = schema["properties"]["config"]["properties"]
    return [Setting(key.removeprefix("berth:"), schema, node) for key, node in config.items()]


def find(schema: Node, path: str) -> Setting:
    """Return the setting at a path; keys that users choose may be left out: `pools.capacity`."""
    named = {root.path: root for root in roots(schema)}
    first, _, rest = path.partition(".")
    setting = named.get(first, named["environment"])
    for part in (rest if first in named else path).split("."):
        if part:
            setting = _step(setting, part)
    return setting


def _step(setting: Setting, part: str) -> Setting:
    children = list(setting.children())
    by_name = {child.name: child for child in children}
    if part in by_name:
        return by_name[part]
    chosen = next(
        (child for child in children if child.name.isupper() or child.path.endswith("[]")), None
    )
    if chosen is None:
        raise BadInputError(
            f"{setting.path} has no setting {part!r}{did_you_mean(part, by_name)}",
            f"list its settings: berth explain {setting.path}",
        )
    inside = {child.name: child for child in chosen.children()}
    if part not in inside and get_close_matches(part, inside, cutoff=_NEAR):
        hint = did_you_mean(part, inside)
        raise BadInputError(
            f"{chosen.path} has no setting {part!r}{hint}",
            f"list them: berth explain {chosen.path}",
        )
    return inside.get(part, chosen)


def everything(setting: Setting) -> Iterator[Setting]:
    """Yield a setting and all settings inside it, from the top."""
    yield setting
    for child in setting.children():
        yield from everything(child)


def _chosen_by(node: Node, name: str, forms: Sequence[Node]) -> Node:
    """Return a property's node; one that chooses among forms, such as `kind`, has all values."""
    values = [
        form["properties"][name]["const"]
        for form in forms
        if "const" in form.get("properties", {}).get(name, {})
    ]
    return (
        {**{key: part for key, part in node.items() if key != "const"}, "enum": values}
        if len(values) > 1
        else node
    )


def _resolve(node: Node, schema: Node) -> Node:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def _forms(node: Node, schema: Node) -> Iterator[Node]:
    """Yield the alternatives of a node, references resolved, null left out."""
    node = _resolve(node, schema)
    alternatives = node.get("anyOf") or node.get("oneOf")
    if alternatives and "properties" not in node:
        for alternative in alternatives:
            yield from _forms(alternative, schema)
    elif node.get("type") != "null":
        yield node


def _mappings(node: Node, schema: Node) -> Iterator[Node]:
    return (form for form in _forms(node, schema) if form.get("properties"))


def _type(node: Node, schema: Node) -> str:
    return names_in_words(
        dict.fromkeys(_type_of_form(form, schema) for form in _forms(node, schema)) or ["value"],
        "or",
    )


def _type_of_form(form: Node, schema: Node) -> str:
    if "const" in form:
        return flow(form["const"])
    if values := form.get("enum"):
        if len(values) <= _LONGEST_ENUM:
            return names_in_words(map(flow, values), "or")
        return f"one of {len(values)} values (such as {flow(values[0])})"
    kind = form.get("type", "value")
    if kind == "array":
        return f"list of {_many(form.get('items', {}), schema)}"
    if kind == "object":
        value = form.get("additionalProperties")
        return (
            f"mapping of {_many(value, schema)}" if isinstance(value, dict) and value else "mapping"
        )
    return str(kind)


def _many(node: Node, schema: Node) -> str:
    """Return the type of several values: `strings`, or `RAPID, REGULAR or STABLE`."""
    kinds = {form.get("type") for form in _forms(node, schema)}
    text = _type(node, schema)
    plain = kinds <= {"string", "integer", "number", "boolean", "object"} and len(kinds) == 1
    return (
        f"{text}s"
        if plain and text in {"string", "integer", "number", "boolean", "mapping"}
        else text
    )


def completed(incomplete: str) -> list[tuple[str, str]]:
    """Return paths of settings one level below what is typed, with their descriptions."""
    above, dot, _ = incomplete.rpartition(".")
    try:
        schema = json.loads(
            (Path(__file__).parents[2] / "template/stacks/schema.json").read_text(encoding="utf-8")
        )
        setting = find(schema, above)
    except (BadInputError, OSError):
        return []
    found = []
    for child in setting.children():
        chosen = child.name.isupper() or child.path.endswith("[]")
        found += [(one.name, one.description) for one in (child.children() if chosen else [child])]
    if not above:
        found += [
            ("environment", "Settings of an environment."),
            ("engineer", "Settings of an engineer's own stack."),
        ]
    return [(f"{above}{dot}{name}", text) for name, text in found]
