"""Kubeconfig of a GKE cluster."""

import json

from berth.components.cluster.kubeconfig import GKE_LOGIN


def gke_kubeconfig(name: str, endpoint: str, certificate_authority: str | None) -> str:
    """Return a kubeconfig as JSON, without credentials: clients run gke-gcloud-auth-plugin.

    See https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl.

    Args:
        name: name of the cluster, its user and its context.
        endpoint: address or DNS name of the control plane.
        certificate_authority: certificate in base64; None for an authority that everyone trusts.
    """
    server = {"server": f"https://{endpoint}"}
    if certificate_authority is not None:
        server["certificate-authority-data"] = certificate_authority
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": server}],
            "users": [{"name": name, "user": GKE_LOGIN}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )
