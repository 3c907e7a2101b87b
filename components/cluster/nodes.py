"""What can be told of a node from the API server's object: pure."""

from __future__ import annotations

from typing import Any


def is_ready(node: dict[str, Any]) -> bool:
    """Whether its kubelet says that it takes pods."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
