"""Pulumi's kubernetes provider, as every stack configures it."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes


def kubernetes_provider(kubeconfig: pulumi.Input[str], cluster: pulumi.Input[str]) -> pulumi_kubernetes.Provider:
    """Return a provider for one cluster that can resume after a killed run.

    Args:
        kubeconfig: the kubeconfig as text.
        cluster: an identifier that stays the same for the cluster's whole life.
    """
    return pulumi_kubernetes.Provider(
        "cluster",
        kubeconfig=kubeconfig,
        # Without it, a new address of the control plane replaces every object.
        cluster_identifier=cluster,
        enable_server_side_apply=True,
        # The next run takes over objects that a killed run created but did not record. Objects of
        # another stack stay refused: it is another field manager, and its labels conflict (see
        # manifest.py).
        upsert_existing_objects=True,
    )
