"""The base of every settings model: strict, frozen, camelCase in YAML."""

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import zip_longest
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Settings(BaseModel):
    """Part of a stack's config, without unknown keys; attribute docstrings go into the schema."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
    )

    other_words: ClassVar[Mapping[str, str]] = {}
    """Hints for keys that are other tools' words, or the settings' own of an older berth."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        """Return the JSON Schema of the model, with the docstrings of its fields as descriptions.

        pydantic's own `use_attribute_docstrings` reads the source of each model whenever a command
        starts, which takes 0.14 s; only the schema needs descriptions.
        """
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in _docstrings(cls).items():
            field = cls.model_fields.get(name)
            if field and (key := field.alias or name) in properties:
                properties[key].setdefault("description", text)
        return schema

    @classmethod
    def hint(cls, key: str, value: object) -> str:  # noqa: ARG003 - for models whose hint depends on it
        """Return what to write instead of an unknown key; "" without an idea."""
        return cls.other_words.get(key, "")


class DefaultedSettings(Settings):
    """Settings with a default for every key that is missing or null."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: inner for key, inner in value.items() if inner is not None}

    def written_values(self) -> dict[str, Any]:
        """Return the keys that were written, by field name."""
        return self.model_dump(exclude_unset=True, exclude_none=True)


def written_keys(settings: BaseModel) -> list[str]:
    """Return the keys that were written, as in YAML, in the order of the model."""
    fields = type(settings).model_fields
    return [
        field.alias or name for name, field in fields.items() if name in settings.model_fields_set
    ]


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of a model's fields by name."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, Settings) or base is Settings:
            continue
        body = _classes(base.__module__)[base.__name__].body
        for field, text in zip_longest(body, body[1:]):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                texts.pop(field.target.id, None)
                if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                    texts[field.target.id] = inspect.cleandoc(str(text.value.value))
    return texts


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes at the top of a module; a module has the sources of many models."""
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}
