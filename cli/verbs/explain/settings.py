"""Settings as `berth explain` and the reference show them, read from the JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from berth.cli.verbs.explain.effects import effect_of, meaning_of
from berth.cli.verbs.explain.schema_nodes import (
    Node,
    choices_of,
    forms_of,
    is_mapping,
    property_in_forms,
    type_in_words,
    without_references,
    yaml_flow,
)
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean

_NEAR = 0.8
"""Likeness from which a word is a misspelled setting and not a name that a user chose."""
_KEY = {"engineers": "ENGINEER", "sharing": "PROFILE", "workerGroups": "GROUP"}
"""Placeholders of keys that users choose, by setting; of all others NAME."""


@dataclass(frozen=True)
class Setting:
    """Setting of a stack.

    Attributes:
        path: dotted path, with placeholders for keys that users choose:
            `environment.pools.NAME.nodes`.
        schema: the whole schema, for references.
        node: the setting's own part of the schema.
        required: whether the setting has to be written.
    """

    path: str
    schema: Node
    node: Node
    required: bool = False

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def has_chosen_key(self) -> bool:
        """Whether users choose the setting's own key, or it is an entry of a list."""
        return self.name.isupper() or self.path.endswith("[]")

    @property
    def description(self) -> str:
        """First paragraph of the description of the setting, or of its type."""
        text = str(self.node.get("description") or self.resolved.get("description") or "")
        return text.partition("\n\n")[0].replace("\n", " ")

    @property
    def type(self) -> str:
        """Type in words: `integer or mapping`, `list of strings`, `mapping of NAME`."""
        return type_in_words(self.node, self.schema)

    @property
    def default(self) -> str:
        """Default in YAML's flow style; empty for none, and for a mapping or a list."""
        value = self.node.get("default")
        return "" if value is None or isinstance(value, dict | list) else yaml_flow(value)

    @property
    def example_values(self) -> list[Any]:
        """Example values: those of the declaration, else a value that is not the default."""
        for node in (self.node, *forms_of(self.node, self.schema)):
            if node.get("examples"):
                return list(node["examples"])
        choices = self.choices
        for value in choices:
            if value != self.node.get("default"):
                return [value]
        return choices[:1]

    @property
    def examples(self) -> list[str]:
        """Example values in YAML's flow style."""
        return [yaml_flow(value) for value in self.example_values]

    @property
    def choices(self) -> list[Any]:
        """Values of a setting that has only a few; empty for any other."""
        return choices_of(self.node, self.schema)

    @property
    def effect(self) -> str:
        """Effect of an edit in a phrase; empty for a setting that only holds others."""
        return effect_of(self.path)

    @property
    def meaning(self) -> str:
        """Meaning of the effect's most severe phrase."""
        return meaning_of(self.effect)

    @cached_property
    def resolved(self) -> Node:
        """The setting's part of the schema, without references."""
        return without_references(self.node, self.schema)

    def children(self) -> Iterator[Setting]:
        """Yield the settings inside this one, those of every form that it can take, each once."""
        seen = set()
        forms = list(forms_of(self.node, self.schema))
        for form in forms:
            for child in self._children_in(form, forms):
                if child.path not in seen:
                    seen.add(child.path)
                    yield child

    def _children_in(self, form: Node, forms: list[Node]) -> Iterator[Setting]:
        required = form.get("required", [])
        for name, node in form.get("properties", {}).items():
            path = f"{self.path}.{name}" if self.path else name
            child = property_in_forms(node, name, forms)
            yield Setting(path, self.schema, child, name in required)
        value = form.get("additionalProperties")
        if isinstance(value, dict) and is_mapping(value, self.schema):
            yield Setting(f"{self.path}.{_KEY.get(self.name, 'NAME')}", self.schema, value)
        if "items" in form and is_mapping(form["items"], self.schema):
            yield Setting(f"{self.path}[]", self.schema, form["items"])

    def document(self, *, recursive: bool = False) -> dict[str, Any]:
        """Return the setting as JSON shows it, with the paths or the documents of those inside."""
        children = list(self.children())
        return {
            "path": self.path,
            "type": self.type,
            "required": self.required,
            "default": self.node.get("default"),
            "description": self.description,
            "examples": self.example_values,
            "effect": self.effect,
            "fields": (
                [child.document(recursive=True) for child in children]
                if recursive
                else [child.path for child in children]
            ),
        }


def root_settings(schema: Node) -> list[Setting]:
    """Return the settings of an environment and of an engineer's stack as a whole."""
    config = schema["properties"]["config"]["properties"]
    return [Setting(key.removeprefix("berth:"), schema, node) for key, node in config.items()]


def setting_at(schema: Node, path: str) -> Setting:
    """Return the setting at a path; keys that users choose may be left out: `pools.capacity`.

    Raises:
        BadInputError: there is no such setting.
    """
    roots = {root.path: root for root in root_settings(schema)}
    first, _, rest = path.partition(".")
    setting = roots.get(first, roots["environment"])
    for part in (rest if first in roots else path).split("."):
        if part:
            setting = _child_named(setting, part)
    return setting


def _child_named(setting: Setting, part: str) -> Setting:
    """Return the setting inside another of this name, or below the key that users choose there."""
    children = list(setting.children())
    by_name = {child.name: child for child in children}
    if part in by_name:
        return by_name[part]
    chosen = next((child for child in children if child.has_chosen_key), None)
    if chosen is None:
        raise BadInputError(
            f"{setting.path} has no setting {part!r}{did_you_mean(part, by_name)}",
            f"list its settings: berth explain {setting.path}",
        )
    inside = {child.name: child for child in chosen.children()}
    if part not in inside and get_close_matches(part, inside, cutoff=_NEAR):
        raise BadInputError(
            f"{chosen.path} has no setting {part!r}{did_you_mean(part, inside)}",
            f"list them: berth explain {chosen.path}",
        )
    return inside.get(part, chosen)


def with_settings_inside(setting: Setting) -> Iterator[Setting]:
    """Yield a setting and all settings inside it, from the top."""
    yield setting
    for child in setting.children():
        yield from with_settings_inside(child)
