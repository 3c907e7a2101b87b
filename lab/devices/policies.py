"""Watch of ClusterPolicies, whose kind comes and goes with the GPU Operator's chart.

kopf watches the kinds that are always there. Of one that comes later, it misses all objects where
the API server serves the kind a moment after its definition; and where the kind goes, kopf's watch
meets an error that ends the whole process.

Simulates nothing: a client of the real API server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from berth.components.cluster.api import ClusterApi, ClusterError, Object
from berth.lab.devices.reconciler import POLICIES

_WATCH_SECONDS = 600
_AGAIN_SECONDS = 0.5

_log = logging.getLogger("berth.lab.devices")


def seen(api: ClusterApi, wait: Callable[[float], None] = time.sleep) -> Iterator[Object | None]:
    """Yield ClusterPolicies that appear or change, without end; None where any may have gone.

    Args:
        api: the cluster.
        wait: waits so many seconds, while the cluster does not serve the kind.
    """
    served = False
    while True:
        try:
            found, version = api.list(POLICIES)
            if version or served:
                yield None
            served = bool(version)
            yield from found
            if served:
                for event in api.events(POLICIES, version, _WATCH_SECONDS):
                    yield None if event["type"] == "DELETED" else event["object"]
                continue
        except ClusterError as error:
            _log.info("ClusterPolicies: %s", error)
        wait(_AGAIN_SECONDS)
