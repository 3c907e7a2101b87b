"""The base of every settings model: strict, frozen, camelCase in YAML."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    """A part of a stack's config. Unknown keys are refused; attribute docstrings become the schema's descriptions."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        use_attribute_docstrings=True,
    )
