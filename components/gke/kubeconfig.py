"""The kubeconfig of a GKE cluster. Pure."""

from __future__ import annotations

import json


def kubeconfig(name: str, endpoint: str, certificate_authority: str) -> str:
    """A kubeconfig for a GKE cluster.

    Args:
        name: name of the cluster, user and context in it.
        endpoint: host, or host:port, of the control plane.
        certificate_authority: its CA certificate, PEM in base64.

    Returns:
        JSON, which is YAML too. It holds no credential: kubectl, Helm and Pulumi run gke-gcloud-auth-plugin, as
        https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl describes.
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
            "users": [
                {
                    "name": name,
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "gke-gcloud-auth-plugin",
                            "installHint": "install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin",
                            "provideClusterInfo": True,
                        }
                    },
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )
