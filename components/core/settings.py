"""The base of every settings model: strict, frozen, camelCase in YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    """Part of a stack's config, without unknown keys; attribute docstrings go into the schema."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        use_attribute_docstrings=True,
    )

    renamed: ClassVar[Mapping[str, str]] = {}
    """Keys of older versions of berth, with the keys that they have now."""

    @classmethod
    def hint(cls, key: str, value: object) -> str:  # noqa: ARG003 - for models that know other tools' words
        """Return what to write instead of an unknown key; "" without an idea.

        Args:
            key: the key, such as another tool has.
            value: its value.
        """
        return ""


class DefaultedSettings(Settings):
    """Settings with a default for every key that is missing or null."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: inner for key, inner in value.items() if inner is not None}

    def written(self) -> dict[str, Any]:
        """Return the keys that were written, by field name."""
        return self.model_dump(exclude_unset=True, exclude_none=True)
