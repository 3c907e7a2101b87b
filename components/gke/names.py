"""Names of what belongs to a cluster, all derived from the cluster's, and none longer than Google Cloud allows. Pure."""

from __future__ import annotations

import hashlib

LIMIT = 63
"""Characters of a Compute Engine resource's name (https://docs.cloud.google.com/compute/docs/naming-resources)."""

_DIGEST = 6


def derived(*parts: str) -> str:
    """One name of several parts, cut where it would be too long.

    Args:
        parts: the cluster's name first, then what this is.

    Returns:
        The parts joined by `-`; where that is too long, its beginning with a digest of all of it, so that two long names
        with the same beginning stay two names.
    """
    name = "-".join(parts)
    if len(name) <= LIMIT:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: LIMIT - _DIGEST - 1].rstrip('-')}-{digest}"
