"""The base of every settings model: strict, frozen, camelCase in YAML."""

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

    other_words: ClassVar[Mapping[str, str]] = {}
    """Hints for keys that are other tools' words, or the settings' own of an older berth."""

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

    def written(self) -> dict[str, Any]:
        """Return the keys that were written, by field name."""
        return self.model_dump(exclude_unset=True, exclude_none=True)


def written(settings: BaseModel) -> list[str]:
    """Return the keys that were written, as in YAML, in the order of the model."""
    fields = type(settings).model_fields
    return [field.alias or name for name, field in fields.items() if name in settings.model_fields_set]
