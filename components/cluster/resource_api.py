"""Which version of resource.k8s.io, the API of claims, a cluster serves: asked from its API server."""

from __future__ import annotations

import json
from typing import get_args

from berth.components.cluster.api import ClusterApi
from berth.components.hardware.names import ResourceApi

GROUP = "/apis/resource.k8s.io"

VERSIONS: tuple[ResourceApi, ...] = get_args(ResourceApi)
"""The newest first."""

NEWEST = VERSIONS[0]

# GKE lets beta APIs be switched on kind by kind
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-beta-apis).
_NEEDED = {"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"}


def served(api: ClusterApi) -> ResourceApi | None:
    """The newest version with all kinds that claims need; None where the cluster serves none.

    Raises:
        ClusterError: the API server can't be asked.
    """
    offered = {each["version"] for each in _asked(api, GROUP).get("versions") or []}
    for version in VERSIONS:
        if version in offered:
            kinds = {each["name"] for each in _asked(api, f"{GROUP}/{version}").get("resources") or []}
            if kinds >= _NEEDED:
                return version
    return None


def _asked(api: ClusterApi, path: str) -> dict[str, list[dict[str, str]]]:
    return dict(json.loads(api.text(path) or "{}"))
