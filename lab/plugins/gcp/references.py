"""References to networks: by name, path or self link, of any project.

Answers to (read): https://docs.cloud.google.com/vpc/docs/rdma-network-profiles (names of profiles),
    and https://docs.cloud.google.com/compute/docs/reference/rest/v1 (paths and self links).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.gcp.resource import last_part

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record

PROFILE = re.compile(r"(?P<zone>[a-z]+-[a-z]+[0-9]+-[a-z])-vpc-(?P<kind>roce|falcon|roce-metal)")
"""The name of an RDMA network's profile."""


def rdma_zone(network: Record) -> str:
    """The zone of an RDMA network's profile; empty for an ordinary network."""
    match = PROFILE.fullmatch(last_part(network.inputs.get("networkProfile") or ""))
    return match["zone"] if match else ""


def project_of(reference: object, project: str) -> str:
    """The project in a path or self link: that of a Shared VPC may be another one."""
    match = re.search(r"projects/([^/]+)/", str(reference))
    return match[1] if match else project


def further_networks(pool: Record) -> list[dict[str, Any]]:
    """Return the further networks of a pool's nodes, without those that GKE creates itself."""
    found: list[dict[str, Any]] = (pool.inputs.get("networkConfig") or {}).get("additionalNodeNetworkConfigs") or []
    return found
