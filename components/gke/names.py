"""Names of a cluster's resources, as short as Google Cloud demands."""

import hashlib

PROVIDER = "google"
"""Name of the provider resource, which an import has to name."""

LIMIT = 63
"""Longest name of a Compute Engine resource
(https://docs.cloud.google.com/compute/docs/naming-resources)."""

_DIGEST = 6


def resource_name(*parts: str, limit: int = LIMIT) -> str:
    """Return the parts joined by `-`, the cluster's name first.

    A name that is too long is cut and ends with a digest of the whole, so that two long names with
    the same beginning stay two names.

    Args:
        parts: parts of the name.
        limit: most characters of the name.
    """
    name = "-".join(parts)
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: limit - _DIGEST - 1].rstrip('-')}-{digest}"
