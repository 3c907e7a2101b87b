"""Names of a cluster's resources, as short as Google Cloud demands, and the nodes' account."""

import hashlib

from berth.components.core.types import OWN_ACCOUNT
from berth.components.gke.settings import GkeSettings

PROVIDER = "google"
"""Name of the provider resource, which an import has to name."""

LIMIT = 63
"""Longest name of a Compute Engine resource
(https://docs.cloud.google.com/compute/docs/naming-resources)."""

NODE_ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
"""Roles of a node: logs and metrics, and images from the project's Artifact Registry
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster#use_least_privilege_sa)."""

_LONGEST_ACCOUNT = 30
"""Most characters of an account's id
(https://docs.cloud.google.com/iam/docs/service-accounts-create)."""

_DIGEST = 6


def resource_name(*parts: str, limit: int = LIMIT) -> str:
    """Return the parts joined by `-`, the cluster's name first.

    A name that is too long is cut and ends with a digest of the whole, so that two long names with
    the same beginning stay two names.
    """
    name = "-".join(parts)
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: limit - _DIGEST - 1].rstrip('-')}-{digest}"


def account_id(cluster: str) -> str:
    """Return the id of the account that berth creates for a cluster's nodes."""
    return resource_name(cluster, "nodes", limit=_LONGEST_ACCOUNT)


def address(cluster: str, project: str) -> str:
    """Return the address of the account that berth creates for a cluster's nodes."""
    return f"{account_id(cluster)}@{project}.iam.gserviceaccount.com"


def node_account(settings: GkeSettings, cluster: str) -> str | None:
    """Return the address of the nodes' account; None for Compute Engine's default."""
    given = settings.cluster.node_service_account
    return address(cluster, settings.project or "") if given == OWN_ACCOUNT else given
