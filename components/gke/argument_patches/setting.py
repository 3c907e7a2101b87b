"""Patches of arguments as settings: their fields are checked."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import InitErrorDetails, ValidationError

from berth.components.core.types import Document
from berth.components.gke.argument_patches.fields import CLUSTERS, POOLS, PatchedType

Patch = dict[str, Any]


def _check_of(patched: PatchedType) -> Callable[[Patch], Patch]:
    """Return the check of patches of a type, which raises a ValidationError with all problems."""

    def check(patch: Patch) -> Patch:
        details = [
            InitErrorDetails(
                type="value_error", loc=path, input=None, ctx={"error": ValueError(message)}
            )
            for path, message in patched.problems(patch)
        ]
        if details:
            raise ValidationError.from_exception_data("arguments", details)
        return patch

    return check


_ANY_OBJECT = WithJsonSchema({"type": "object", "additionalProperties": True})

ClusterPatch = Annotated[Document, AfterValidator(_check_of(CLUSTERS)), _ANY_OBJECT]
"""Patch of a cluster's arguments."""

PoolPatch = Annotated[Document, AfterValidator(_check_of(POOLS)), _ANY_OBJECT]
"""Patch of a node pool's arguments."""
