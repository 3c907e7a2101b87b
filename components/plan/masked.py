"""Masks for secrets that stand as plain text in the properties of a plan. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from berth.components.core.plain_secrets import masked
from berth.components.plan.paths import MISSING, value_at
from berth.components.plan.plan import Property

_LAST_KEY = re.compile(r'([^.\[\]"]+)$|\["([^"]+)"\]$')
_VALUE = re.compile(r"(^|\.)value$")


def masked_properties(
    properties: Iterable[Property],
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> list[Property]:
    """Return properties with `[secret]` in place of secrets, for whoever reads or saves a plan.

    Effects are judged before: what differs only in a secret looks the same afterward.

    Args:
        properties: changed properties of one resource, or of settings.
        before: the resource's inputs before, which have the names of variables.
        after: its inputs afterward.
    """
    return [
        replace(
            changed,
            old=masked(changed.old, _name_at(changed.path, before)),
            new=masked(changed.new, _name_at(changed.path, after)),
        )
        for changed in properties
    ]


def _name_at(path: str, inputs: Mapping[str, Any] | None) -> str:
    """Return the name of the variable or key whose value is at a path."""
    if _VALUE.search(path):
        name = value_at(inputs or {}, _VALUE.sub(r"\1name", path))
        if name is not MISSING:
            return str(name)
    key = _LAST_KEY.search(path)
    return (key[1] or key[2]) if key else ""
