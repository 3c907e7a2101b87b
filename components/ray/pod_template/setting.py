"""Patch of a pod template, as a setting: checked, with quantities as text."""

from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import InitErrorDetails, ValidationError

from berth.components.core.manifest import Manifest
from berth.components.ray.pod_template.fields import field_problems, with_text_quantities
from berth.components.ray.pod_template.merging import without_idle_directives


def _checked(written: Manifest) -> Manifest:
    """Return a patch with quantities as text.

    Raises:
        ValidationError: the patch has fields that a pod lacks, or that are berth's in every pod.
    """
    patch = with_text_quantities(written)
    details = [
        InitErrorDetails(
            type="value_error", loc=path, input=None, ctx={"error": ValueError(message)}
        )
        for path, message in field_problems(patch)
    ]
    if details:
        raise ValidationError.from_exception_data("podTemplate", details)
    return without_idle_directives(patch)


PodTemplate = Annotated[
    dict[str, Any],
    AfterValidator(_checked),
    WithJsonSchema({"type": "object", "additionalProperties": True}),
]
"""Patch of a pod template: `metadata` and `spec` as in Kubernetes."""
