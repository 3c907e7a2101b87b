"""Open logins of a berth: a mark on its RayCluster that whoever is logged in renews.

This file also runs in the keeper's pod, and imports only the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

# Users of a berth may not write annotations that begin with `berth/` (isolation/ray-policy.yaml).
OPEN_UNTIL = "logins.berth/open-until"
"""Annotation of a RayCluster: time until which a login counts as open."""

RENEWED_EVERY = timedelta(minutes=1)
LASTS = timedelta(minutes=5)
"""Validity of a mark that nobody renews: a machine may sleep, or lose its network."""

# Whoever writes a later time keeps no berth awake for longer.
_LONGEST = timedelta(hours=1)


def open_login(annotations: Mapping[str, str], now: datetime) -> str:
    """Return a RayCluster's open login in words; "" for none. Users write the annotations."""
    text = annotations.get(OPEN_UNTIL)
    if not text:
        return ""
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        return ""
    if until.tzinfo is None or not now < until <= now + _LONGEST:
        return ""
    return f"an open login (renewed until {until.astimezone(UTC):%H:%M} UTC)"
