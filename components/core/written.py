"""Keys that somebody wrote, as opposed to defaults."""

from __future__ import annotations

from pydantic import BaseModel


def written(settings: BaseModel) -> list[str]:
    """Return the keys that were written, as in YAML, in the order of the model."""
    fields = type(settings).model_fields
    return [field.alias or name for name, field in fields.items() if name in settings.model_fields_set]
