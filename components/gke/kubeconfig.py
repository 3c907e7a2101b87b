"""Kubeconfig of a GKE cluster."""

from __future__ import annotations

import json
from typing import Any

GKE_LOGIN: dict[str, Any] = {
    "exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "installHint": "install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin",
        "provideClusterInfo": True,
    }
}
"""User of a kubeconfig who logs in by GKE's credential plugin."""


def kubeconfig(name: str, endpoint: str, certificate_authority: str) -> str:
    """Return a kubeconfig as JSON, without credentials: clients run gke-gcloud-auth-plugin.

    See https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl.

    Args:
        name: name of cluster, user and context.
        endpoint: host, or host:port, of the control plane.
        certificate_authority: CA certificate, PEM in base64.
    """
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": f"https://{endpoint}", "certificate-authority-data": certificate_authority},
                }
            ],
            "users": [{"name": name, "user": GKE_LOGIN}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )
