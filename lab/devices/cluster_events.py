"""Events as the kubelet and the operators write them.

Simulates nothing: it writes the events of other modules to the real API server.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from berth.components.cluster.api import ClusterApi

_MESSAGE_LENGTH = 1024


def now() -> str:
    """The time as the API server writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def warn(cluster: ClusterApi, about: dict[str, Any], kind: str, component: str, reason: str, message: str) -> None:
    """Write a warning about an object.

    Args:
        cluster: where it is.
        about: the object.
        kind: its kind.
        component: who says it.
        reason: the short word for it.
        message: the words; cut at 1024 characters, as the API server would refuse more.

    Raises:
        ClusterError: the API server does not answer, or refuses.
    """
    metadata, time = about["metadata"], now()
    namespace = metadata.get("namespace") or "default"
    event = {
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": kind,
            "name": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "uid": metadata["uid"],
        },
        "type": "Warning",
        "reason": reason,
        "message": message[:_MESSAGE_LENGTH],
        "source": {"component": component},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/events", event)
