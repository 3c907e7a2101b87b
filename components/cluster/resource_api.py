"""Versions of resource.k8s.io, the API of claims, that a cluster serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from berth.components.hardware.names import ResourceApi

if TYPE_CHECKING:
    from berth.components.cluster.api import Object, Reader

GROUP = "/apis/resource.k8s.io"

VERSIONS: tuple[ResourceApi, ...] = get_args(ResourceApi)
"""Versions in which claims can be created, the newest first."""

# GKE lets beta APIs be switched on kind by kind
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-beta-apis).
_NEEDED = {"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"}


def served(api: Reader) -> ResourceApi | None:
    """Return the newest version with all kinds that claims need; None without one.

    Raises:
        ClusterError: the request fails.
    """
    offered = _names(api.get(GROUP), "versions", "version")
    for version in VERSIONS:
        if version in offered and _names(api.get(f"{GROUP}/{version}"), "resources", "name") >= _NEEDED:
            return version
    return None


def _names(answer: Object | None, entries: str, key: str) -> set[str]:
    return {str(entry[key]) for entry in (answer or {}).get(entries) or []}
