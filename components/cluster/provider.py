"""The provider through which a stack's Kubernetes objects are made."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes


def kubernetes_provider(kubeconfig: pulumi.Input[str], cluster: pulumi.Input[str]) -> pulumi_kubernetes.Provider:
    """A provider for one cluster, safe to run again after a run that was killed.

    Args:
        kubeconfig: as text.
        cluster: what stays the same for the cluster's whole life.
    """
    return pulumi_kubernetes.Provider(
        "cluster",
        kubeconfig=kubeconfig,
        # Without it a new address of the control plane would look like another cluster, and all would be replaced.
        cluster_identifier=cluster,
        enable_server_side_apply=True,
        # What a killed run made but could not note down is taken over by the next one instead of refused. It takes over
        # nothing of another stack: that one is another field manager, and its labels conflict (see manifest.py).
        upsert_existing_objects=True,
    )
