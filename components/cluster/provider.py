"""Pulumi's kubernetes provider, as every stack configures it."""

import inspect

import pulumi
import pulumi_kubernetes


def kubernetes_provider(
    name: str, kubeconfig: pulumi.Input[str], cluster: pulumi.Input[str], context: str | None = None
) -> pulumi_kubernetes.Provider:
    """Return a provider for one cluster that can resume after a killed run.

    Args:
        name: Pulumi's name of the provider.
        kubeconfig: the kubeconfig as text, or the path of its file, whose credentials then stay out
            of the stack's state.
        cluster: an identifier that stays the same for the cluster's whole life. Without it, a new
            address of the control plane would replace every object.
        context: context of the kubeconfig. Default: its current one.
    """
    known = inspect.signature(pulumi_kubernetes.ProviderArgs).parameters
    arguments = pulumi_kubernetes.ProviderArgs(
        kubeconfig=kubeconfig,
        context=context,
        cluster_identifier=cluster,
        enable_server_side_apply=True,
        # The next run takes over objects that a killed run created but did not record. Objects of
        # another stack stay refused: it is another field manager, and its labels conflict (see
        # manifest.py). Plugins before 4.29 do so without being asked, and have no such argument.
        **({"upsert_existing_objects": True} if "upsert_existing_objects" in known else {}),
    )
    return pulumi_kubernetes.Provider(name, arguments)
