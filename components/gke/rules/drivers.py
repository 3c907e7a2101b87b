"""Rule of GKE's drivers for volumes and secrets: none is off that something uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from berth.components.core.problems import Problem
from berth.components.gke.cluster_settings import ClusterSettings

Driver = Literal["gcsFuse", "filestore", "secretSync"]
"""Driver, by its key in the settings of the cluster."""


def problems(settings: ClusterSettings, users: Mapping[Driver, Sequence[str]]) -> Iterable[Problem]:
    """Yield drivers that are off and in use."""
    drivers: tuple[tuple[Driver, bool | None, str], ...] = (
        ("gcsFuse", settings.gcs_fuse, "mounts a bucket"),
        ("filestore", settings.filestore, "mounts a share"),
        ("secretSync", settings.secret_sync, "has a secret of Secret Manager"),
    )
    for key, given, use in drivers:
        if users[key] and given is False:
            message = f"is false, but {', '.join(users[key])} {use}; take it out"
            yield Problem(("environment", "cluster", key), message)
