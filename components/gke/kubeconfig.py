"""Kubeconfig of a GKE cluster."""

import json

from berth.components.cluster.kubeconfig import GKE_LOGIN
from berth.components.core.manifest import manifest_of


def kubeconfig(name: str, endpoint: str, certificate_authority: str | None) -> str:
    """Return a kubeconfig as JSON, without credentials: clients run gke-gcloud-auth-plugin.

    See https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl.
    """
    values = {
        "name": name,
        "endpoint": endpoint,
        "authority": certificate_authority,
        "login": GKE_LOGIN,
    }
    return json.dumps(manifest_of(__file__, "kubeconfig", **values))
