"""Kubeconfig of a GKE cluster."""

import json
from typing import Any

from berth.components.core.manifest import manifest_of

GKE_LOGIN: dict[str, Any] = {
    "exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "installHint": "install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin",
        "provideClusterInfo": True,
    }
}
"""User of a kubeconfig who logs in by GKE's credential plugin."""


def kubeconfig(name: str, endpoint: str, certificate_authority: str | None) -> str:
    """Return a kubeconfig as JSON, without credentials: clients run gke-gcloud-auth-plugin.

    See https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl.
    """
    values = {"name": name, "endpoint": endpoint, "authority": certificate_authority, "login": GKE_LOGIN}
    return json.dumps(manifest_of(__file__, "kubeconfig", **values))
