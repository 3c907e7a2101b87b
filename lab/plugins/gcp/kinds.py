"""Kinds of differences of properties, as the engine's protocol numbers them."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """Kind of difference of one property; the numbers are the engine's protocol's."""

    ADD = 0
    ADD_REPLACE = 1
    DELETE = 2
    DELETE_REPLACE = 3
    UPDATE = 4
    UPDATE_REPLACE = 5

    @property
    def replaces(self) -> bool:
        """Whether the difference replaces the resource."""
        return self % 2 == 1

    def as_replace(self) -> Kind:
        """Return the same difference, as one that replaces the resource."""
        return Kind(self | 1)

    def in_place(self) -> Kind:
        """Return the same difference, as one that changes the resource in place."""
        return Kind(self & ~1)
