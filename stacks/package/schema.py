"""Schema of the Pulumi package, derived from the models of the settings.

Pulumi's form of it: https://www.pulumi.com/docs/iac/extending-pulumi/schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.components.core.distribution import installed_version
from berth.stacks.load.schema import schema as settings_schema
from berth.stacks.load.stack import KINDS

Node = dict[str, Any]
"""JSON Schema of a value, or Pulumi's schema of it."""

PACKAGE = "berth"
"""Name of the package."""

COMPONENTS = {"berth:index:Environment": "environment", "berth:index:EngineerBerth": "engineer"}
"""Kinds of settings by the type of the component that takes them."""

_ANY = {"$ref": "pulumi.json#/Any"}
_TEXT = {"type": "string"}
_LANGUAGES = ("csharp", "go", "java", "nodejs", "python")


def _names(description: str) -> Node:
    """Return an output that is a list of names."""
    return {"type": "array", "items": _TEXT, "description": description}


OUTPUTS: Mapping[str, Mapping[str, Node]] = {
    "berth:index:Environment": {
        # Engineers' stacks read the keys as they are: a type of its own would get Python's names.
        "environment": {
            "type": "object",
            "additionalProperties": _ANY,
            "secret": True,
            "description": "Document that engineers' own stacks read.",
        },
        "kubeconfig": {
            **_TEXT,
            "secret": True,
            "description": "Kubeconfig of the cluster, without credentials.",
        },
        "clusterId": {**_TEXT, "description": "Id of the cluster for its whole life."},
        "berths": _names("Names of the engineers' berths."),
        "clusters": _names("Names of the shared RayClusters."),
        "jobs": _names("Names of the RayJobs."),
        "services": _names("Names of the RayServices."),
    },
    "berth:index:EngineerBerth": {
        "namespace": {**_TEXT, "description": "Namespace of the berth."},
        "rayCluster": {
            **_TEXT,
            "description": "Name of the RayCluster, if this berth registers it.",
        },
    },
}
"""Outputs of the components, by type and name."""

_SOMETIMES = frozenset({"rayCluster"})
"""Outputs that a component does not always have."""


def package_schema() -> Node:
    """Return the schema of the package."""
    definitions = settings_schema()["$defs"]
    types = _Types()
    models = {token: KINDS[kind].__name__ for token, kind in COMPONENTS.items()}
    for name, node in definitions.items():
        if name not in models.values():
            described = {"type": "object", "description": node.get("description", "")}
            types.add(name, described | types.members(name, node))
    resources = {
        token: _resource(types.members(name, definitions[name]), definitions[name], OUTPUTS[token])
        for token, name in models.items()
    }
    return {
        "name": PACKAGE,
        "displayName": PACKAGE,
        "version": installed_version(),
        "description": "Every engineer gets a berth on shared GPUs.",
        "types": types.by_token,
        "resources": resources,
        # An SDK asks for the version of berth that it was generated from.
        "language": {language: {"respectSchemaVersion": True} for language in _LANGUAGES},
    }


def _resource(members: Node, model: Node, outputs: Mapping[str, Node]) -> Node:
    """Return the schema of a component, by the schema of its settings."""
    return {
        "isComponent": True,
        "description": model.get("description", ""),
        "inputProperties": members["properties"],
        "requiredInputs": members["required"],
        "properties": dict(outputs),
        "required": sorted(set(outputs) - _SOMETIMES),
    }


@dataclass(frozen=True)
class _TypedSetting:
    """Setting whose type is looked for."""

    model: str
    """Name of the model that has it."""
    key: str
    description: str


@dataclass(frozen=True)
class _Types:
    """Named types of the package: objects, and texts of which only some are allowed."""

    by_token: dict[str, Node] = field(default_factory=dict)
    _choices: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Tokens of the texts, by the setting's key and description, and the texts."""

    def add(self, name: str, node: Node) -> str:
        """Add a type, and return its token."""
        token = f"{PACKAGE}:index:{name}"
        if token in self.by_token:
            raise ValueError(f"two types of the package have the name {name}")
        self.by_token[token] = node
        return token

    def members(self, model: str, node: Node) -> Node:
        """Return the properties of a model, and which of them are required."""
        properties = {}
        for key, member in node["properties"].items():
            setting = _TypedSetting(model, key, member.get("description", ""))
            fixed = {"const": member["const"]} if "const" in member else {}
            described = {"description": setting.description}
            properties[key] = self._type_of(setting, member) | fixed | described
        return {"properties": properties, "required": sorted(node.get("required", []))}

    def _type_of(self, setting: _TypedSetting, node: Node) -> Node:
        """Return the type of a setting's value; a null is a property that is left out."""
        if "$ref" in node:
            return {"$ref": _reference(node["$ref"])}
        if alternatives := node.get("anyOf") or node.get("oneOf"):
            return self._union(setting, alternatives) | _discriminator(node)
        if "enum" in node:
            return {"$ref": f"#/types/{self._choice(setting, node['enum'])}"}
        kind = node.get("type")
        if kind == "array":
            return {"type": "array", "items": self._type_of(setting, node["items"])}
        if kind == "object":
            values = node.get("additionalProperties")
            inner = self._type_of(setting, values) if isinstance(values, dict) else _ANY
            return {"type": "object", "additionalProperties": inner}
        return {"type": kind} if kind else dict(_ANY)

    def _union(self, setting: _TypedSetting, alternatives: list[Node]) -> Node:
        """Return the type of a value that is of one of several types, each of them once.

        Of texts, one that allows all of them stands for the others.
        """
        members = [node for node in alternatives if node.get("type") != "null"]
        if any(_is_any_text(node) for node in members):
            members = [node for node in members if _is_any_text(node) or not _is_text(node)]
        types: list[Node] = []
        for node in members:
            found = self._type_of(setting, node)
            inner = found.get("oneOf", [found])
            types += [choice for choice in inner if choice not in types]
        return types[0] if len(types) == 1 else {"oneOf": types}

    def _choice(self, setting: _TypedSetting, texts: list[str]) -> str:
        """Return the token of a type for texts; models that inherit a setting share its type."""
        known = (setting.key, setting.description, *texts)
        if known not in self._choices:
            owner = setting.model.removesuffix("Settings").removesuffix("Shape")
            values = [{"value": text} for text in texts]
            name = owner + setting.key[0].upper() + setting.key[1:]
            self._choices[known] = self.add(name, {"type": "string", "enum": values})
        return self._choices[known]


def _reference(definition: str) -> str:
    """Return the reference to a type of the package for one to a definition of the JSON Schema."""
    return f"#/types/{PACKAGE}:index:{definition.rpartition('/')[2]}"


def _is_text(node: Node) -> bool:
    return node.get("type") == "string" or "enum" in node


def _is_any_text(node: Node) -> bool:
    return node.get("type") == "string" and "enum" not in node and "const" not in node


def _discriminator(node: Node) -> Node:
    """Return the property that tells the types of a union apart, where there is one."""
    given = node.get("discriminator")
    if not given:
        return {}
    mapping = {value: _reference(reference) for value, reference in given["mapping"].items()}
    return {"discriminator": {"propertyName": given["propertyName"], "mapping": mapping}}
