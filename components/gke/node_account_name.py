"""Name and roles of the nodes' service account, which are known before the account exists."""

from __future__ import annotations

from berth.components.core.types import OWN_ACCOUNT
from berth.components.gke.names import derived
from berth.components.gke.settings import GkeSettings

ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
"""Roles of a node: logs and metrics, and images from the project's Artifact Registry
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster#use_least_privilege_sa)."""

_LONGEST = 30
"""Most characters of an account's id
(https://docs.cloud.google.com/iam/docs/service-accounts-create)."""


def account_id(cluster: str) -> str:
    """Return the id of the account that berth creates for a cluster's nodes."""
    return derived(cluster, "nodes", limit=_LONGEST)


def address(cluster: str, project: str) -> str:
    """Return the address of the account that berth creates for a cluster's nodes."""
    return f"{account_id(cluster)}@{project}.iam.gserviceaccount.com"


def node_account(settings: GkeSettings, cluster: str) -> str | None:
    """Return the address of the nodes' account; None for Compute Engine's default."""
    given = settings.cluster.node_service_account
    return address(cluster, settings.project or "") if given == OWN_ACCOUNT else given
