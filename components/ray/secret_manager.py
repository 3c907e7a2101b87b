"""Secret variables from Secret Manager: objects by which GKE writes the values into Secrets.

GKE's controller reads each secret as a service account of the berth's namespace under which no pod
of the berth runs, and only that account needs a right on the secret. GKE's add-on with a driver for
volumes gives pods files, and no variables.

Sources: https://docs.cloud.google.com/secret-manager/docs/sync-k8-secrets, and for the fields of
the kinds https://github.com/kubernetes-sigs/secrets-store-sync-controller, api/v1alpha1.
"""

import json
from collections.abc import Mapping

from berth.components.cluster.pods import SYNCED
from berth.components.core.manifest import Manifest
from berth.components.ray.variables import VALUE, SecretKey, from_secret_manager

SYNC_ACCOUNT = "secret-manager"
"""ServiceAccount as which GKE reads the secrets of a berth."""

SYNC_API = "secret-sync.gke.io/v1"
"""API of GKE's synchronization with Secret Manager."""

SYNCS_PATH = f"/apis/{SYNC_API}/secretsyncs"
"""API path of the objects for which GKE writes Secrets."""


def full_name(secret: str, project: str | None) -> str:
    """Return a secret of Secret Manager with its project and version, by default the latest."""
    path = secret
    if not secret.startswith("projects/"):
        path = f"projects/{project or 'PROJECT'}/secrets/{secret}"
    return path if "/versions/" in path else f"{path}/versions/latest"


def synchronized_secrets(secrets: Mapping[str, SecretKey], project: str | None) -> dict[str, str]:
    """Return the secrets of Secret Manager by the names of the Secrets with the values."""
    return {
        name: full_name(secret, project) for name, secret in from_secret_manager(secrets).items()
    }


def secret_objects(
    secrets: Mapping[str, SecretKey], project: str | None, namespace: str, labels: dict[str, str]
) -> list[Manifest]:
    """Return the objects by which GKE writes values of Secret Manager into Secrets.

    Each secret has objects of its own, so that one that cannot be read holds no other one back.

    Args:
        secrets: secret variables by name.
        project: Google Cloud project of secrets that name none.
        namespace: namespace of the berth.
        labels: labels of the berth's objects.
    """
    synchronized = synchronized_secrets(secrets, project)
    if not synchronized:
        return []
    place: Manifest = {"namespace": namespace, "labels": labels}
    objects = [_account({"name": SYNC_ACCOUNT, **place})]
    for name, secret in synchronized.items():
        metadata = {"name": name, **place}
        objects.append(_provider_class(metadata, secret))
        objects.append(_sync(metadata))
    return objects


def _account(metadata: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": False,
    }


def _provider_class(metadata: Manifest, secret: str) -> Manifest:
    # A text of YAML, which JSON is.
    files = json.dumps([{"resourceName": secret, "path": VALUE}])
    return {
        "apiVersion": "secrets-store.csi.x-k8s.io/v1",
        "kind": "SecretProviderClass",
        "metadata": metadata,
        "spec": {"provider": "gke", "parameters": {"secrets": files}},
    }


def _sync(metadata: Manifest) -> Manifest:
    return {
        "apiVersion": SYNC_API,
        "kind": "SecretSync",
        "metadata": metadata,
        "spec": {
            "serviceAccountName": SYNC_ACCOUNT,
            "secretProviderClassName": metadata["name"],
            "secretObject": {
                "type": "Opaque",
                "data": [{"sourcePath": VALUE, "targetKey": SYNCED}],
            },
        },
    }
