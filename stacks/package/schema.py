"""Schema of the Pulumi package, derived from the models of the settings."""

from collections.abc import Mapping
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.distribution import installed_version
from berth.stacks.load.schema import schema as settings_schema
from berth.stacks.load.stack import KINDS

COMPONENTS = {"berth:index:Environment": "environment", "berth:index:EngineerBerth": "engineer"}
"""Kinds of settings by the type of the component that takes them."""

OUTPUTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = fast_yaml.beside(__file__, "outputs.yaml")
"""Outputs of the components, by type and name."""

_ANY = {"$ref": "pulumi.json#/Any"}


def package_schema() -> dict[str, Any]:
    """Return the schema of the package (https://www.pulumi.com/docs/iac/extending-pulumi/schema)."""
    definitions = settings_schema()["$defs"]
    models = {token: definitions.pop(KINDS[kind].__name__) for token, kind in COMPONENTS.items()}
    return {
        "name": "berth",
        "displayName": "berth",
        "version": installed_version(),
        "description": "Every engineer gets a berth on shared GPUs.",
        "types": {
            f"berth:index:{name}": {"type": "object"} | _members(node)
            for name, node in definitions.items()
            if "properties" in node
        },
        "resources": {
            token: {
                "isComponent": True,
                "description": model.get("description", ""),
                "inputProperties": members["properties"],
                "requiredInputs": members["required"],
                "properties": OUTPUTS[token],
            }
            for token, model in models.items()
            for members in [_members(model)]
        },
    }


def _members(node: Mapping[str, Any]) -> dict[str, Any]:
    described = {
        name: _type_of(member) | {"description": member.get("description", "")}
        for name, member in node["properties"].items()
    }
    return {"properties": described, "required": sorted(node.get("required", []))}


def _type_of(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the package's type of a value; a null is a property that is left out."""
    if "$ref" in node:
        return {"$ref": f"#/types/berth:index:{node['$ref'].rpartition('/')[2]}"}
    alternatives = node.get("anyOf") or node.get("oneOf") or ()
    choices = [_type_of(choice) for choice in alternatives if choice.get("type") != "null"]
    if choices:
        unique = [choice for position, choice in enumerate(choices) if choice not in choices[:position]]
        return unique[0] if len(unique) == 1 else {"oneOf": unique}
    kind = node.get("type")
    if kind == "array":
        return {"type": "array", "items": _type_of(node["items"])}
    if kind == "object":
        values = node.get("additionalProperties")
        return {"type": "object", "additionalProperties": _type_of(values) if isinstance(values, dict) else _ANY}
    return {"type": kind} if kind else dict(_ANY)
