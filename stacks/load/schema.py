"""JSON Schema of a stack's config file."""

import json
from collections.abc import Mapping
from typing import Any

from berth.stacks.files.stack_file import NAMESPACE
from berth.stacks.load.stack import KINDS


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a stack's config file, for editors."""
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for kind, model in KINDS.items():
        part = model.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        definitions |= part.pop("$defs", {})
        definitions[model.__name__] = part
        properties[f"{NAMESPACE}:{kind}"] = {"$ref": f"#/$defs/{model.__name__}"}
    _describe(definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Config of a berth stack",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": properties,
                "oneOf": [{"required": [key]} for key in properties],
                # Settings of other providers (gcp:…) are allowed; misspelled ones of berth are not.
                "patternProperties": {f"^{NAMESPACE}:(?!({'|'.join(KINDS)})$)": False},
            }
        },
        "required": ["config"],
        "$defs": definitions,
    }


def _describe(definitions: Mapping[str, Any]) -> None:
    """Give each property without a description the first paragraph of its type's."""
    for definition in definitions.values():
        for node in definition.get("properties", {}).values():
            if "$ref" in node and "description" not in node:
                text = definitions[node["$ref"].rpartition("/")[2]].get("description", "")
                node["description"] = text.partition("\n\n")[0]


def schema_text() -> str:
    """Return the schema as the file stacks/schema.json has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
