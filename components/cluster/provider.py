"""Pulumi's kubernetes provider, as every stack configures it."""

import inspect

import pulumi
import pulumi_kubernetes


def kubernetes_provider(
    name: str, kubeconfig: pulumi.Input[str], cluster: pulumi.Input[str], context: str | None = None
) -> pulumi_kubernetes.Provider:
    """Return a provider for one cluster that can resume after a killed run.

    A `kubeconfig` is a text, or the path of a file whose credentials then stay out of the state; an
    empty one stands for the files of KUBECONFIG, which the plugin merges.
    `cluster` is an id for the cluster's whole life: without it, a new address of the control plane
    would replace every object.
    """
    # The next run takes over objects that a killed run created but did not record. Objects of
    # another stack stay refused: it is another field manager, and its labels conflict (see
    # manifest.py). Plugins before 4.29 do so without being asked, and have no such argument.
    resumes = {}
    if "upsert_existing_objects" in inspect.signature(pulumi_kubernetes.ProviderArgs).parameters:
        resumes["upsert_existing_objects"] = True
    arguments = pulumi_kubernetes.ProviderArgs(
        kubeconfig=kubeconfig,
        context=context,
        cluster_identifier=cluster,
        enable_server_side_apply=True,
        **resumes,
    )
    return pulumi_kubernetes.Provider(name, arguments)
