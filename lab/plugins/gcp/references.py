"""References to networks and subnetworks: by name, path or self link, of any project.

Answers to (read): https://docs.cloud.google.com/vpc/docs/rdma-network-profiles (names of profiles),
    and https://docs.cloud.google.com/compute/docs/reference/rest/v1 (paths and self links).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.gcp.errors import not_found
from berth.lab.plugins.gcp.resource import Cloud, last_part

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record

PROFILE = re.compile(r"(?P<zone>[a-z]+-[a-z]+[0-9]+-[a-z])-vpc-(?P<kind>roce|falcon|roce-metal)")
"""The name of an RDMA network's profile."""


def rdma_zone(network: Record) -> str:
    """The zone of an RDMA network's profile; empty for an ordinary network."""
    match = PROFILE.fullmatch(last_part(network.inputs.get("networkProfile") or ""))
    return match["zone"] if match else ""


def find_network(cloud: Cloud, reference: object, project: str) -> Record:
    """The network that another resource names, by name, path or self link.

    Raises:
        GoogleApiError: 404 when there is none.
    """
    path = f"projects/{project_of(reference, project)}/global/networks/{last_part(reference)}"
    network = cloud.store.get(path)
    if network is None:
        raise not_found(path)
    return network


def find_subnetwork(cloud: Cloud, reference: object, project: str, region: str) -> tuple[str, Record | None]:
    """The path of the subnetwork that another resource names, and the subnetwork if it is there."""
    path = f"projects/{project_of(reference, project)}/regions/{region}/subnetworks/{last_part(reference)}"
    return path, cloud.store.get(path)


def project_of(reference: object, project: str) -> str:
    """The project in a path or self link: that of a Shared VPC may be another one."""
    match = re.search(r"projects/([^/]+)/", str(reference))
    return match[1] if match else project


def is_reference(reference: object, project: str, resource: Record) -> bool:
    """Whether a reference that a resource of a project makes is to this one."""
    return last_part(reference) == resource.name and project_of(reference, project) == resource.project


def further_networks(pool: Record) -> list[dict[str, Any]]:
    """Return the further networks of a pool's nodes, without those that GKE creates itself."""
    found: list[dict[str, Any]] = (pool.inputs.get("networkConfig") or {}).get("additionalNodeNetworkConfigs") or []
    return found
