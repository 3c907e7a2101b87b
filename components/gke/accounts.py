"""Service account of a cluster's nodes: its id, its address and its roles."""

from berth.components.core.types import OWN_ACCOUNT
from berth.components.gke.names import resource_name
from berth.components.gke.settings import GkeSettings

NODE_ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
"""Roles of a node: logs and metrics, and images from the project's Artifact Registry
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster#use_least_privilege_sa)."""

_LONGEST_ACCOUNT = 30
"""Most characters of an account's id
(https://docs.cloud.google.com/iam/docs/service-accounts-create)."""


def account_id(cluster: str) -> str:
    """Return the id of the account that berth creates for a cluster's nodes."""
    return resource_name(cluster, "nodes", limit=_LONGEST_ACCOUNT)


def account_address(cluster: str, project: str) -> str:
    """Return the address of the account that berth creates for a cluster's nodes."""
    return f"{account_id(cluster)}@{project}.iam.gserviceaccount.com"


def node_account_address(settings: GkeSettings, cluster: str) -> str | None:
    """Return the address of the nodes' account; None for Compute Engine's default."""
    account = settings.cluster.node_service_account
    if account == OWN_ACCOUNT:
        return account_address(cluster, settings.project or "")
    return account
