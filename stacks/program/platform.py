"""Platform of a stack: the cluster for its objects, and the login of whoever runs Pulumi."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes

from berth.components.cluster.kubeconfig import (
    KubeconfigContext,
    KubeconfigError,
    Login,
    has_login,
    own_login,
    pinned_login,
    read_kubeconfig,
    without_credentials,
)
from berth.components.cluster.provider import kubernetes_provider
from berth.components.core.errors import BadInputError
from berth.components.core.problems import Problem
from berth.components.core.project import path_of_setting
from berth.components.gke import ExistingCluster
from berth.stacks.files.stack_file import StackFile
from berth.stacks.load.stack import SettingsError

CLUSTER = "cluster"
"""Pulumi's name of the cluster's provider."""


@dataclass(frozen=True)
class Platform:
    """Cluster for an environment's operators and RayClusters."""

    kubeconfig: pulumi.Output[str]
    """Kubeconfig as text, for this process; secret."""
    public: pulumi.Output[str]
    """Kubeconfig without credentials, the stack's output, which its state may have."""
    cluster_id: pulumi.Input[str]
    """Id for the cluster's whole life; another id recreates everything on the cluster."""
    ready: Sequence[pulumi.Resource] = ()
    """Resources that come before anything on the cluster, and go after it."""
    login: Login | None = None
    """Kubeconfig of the user who runs Pulumi, where `public` has no login."""

    def provider(self, name: str = CLUSTER) -> pulumi_kubernetes.Provider:
        """Register the provider of the cluster under a name of Pulumi."""
        if self.login is None:
            return kubernetes_provider(name, self.public, self.cluster_id)
        return kubernetes_provider(name, self.login.kubeconfig, self.cluster_id, self.login.context)


def existing_platform(stack: str, settings: ExistingCluster, file: StackFile | None) -> Platform:
    """Return the platform of an environment that makes no cluster.

    Its id is the API server's address, until the cluster has a mark with another one.

    Raises:
        SettingsError: the kubeconfig cannot be used.
    """
    try:
        path = path_of_setting(settings.kubeconfig)
        return platform_of_login(read_kubeconfig(path).context(settings.context), settings.login)
    except BadInputError as error:
        key = error.key if isinstance(error, KubeconfigError) else "kubeconfig"
        problem = Problem(("environment", "cluster", "existing", key), str(error))
        raise SettingsError(stack, [problem], file) from None


def platform_of_environment(
    kubeconfig: str, cluster_id: pulumi.Input[str], named: ExistingCluster | None
) -> Platform:
    """Return the platform of an engineer's stack: the environment's cluster, with the user's login.

    Args:
        kubeconfig: output `kubeconfig` of the environment's stack.
        cluster_id: output `clusterId` of the environment's stack.
        named: login of the environment's own settings.

    Raises:
        KubeconfigError: no kubeconfig of this machine logs in to the cluster.
    """
    text, login = own_login(kubeconfig, named.login if named else None)
    return Platform(
        pulumi.Output.secret(text),
        pulumi.Output.secret(kubeconfig),
        cluster_id,
        login=pinned_login(login, text) if login else None,
    )


def platform_of_login(context: KubeconfigContext, login: Login) -> Platform:
    """Return the platform of a cluster that is reached by the login of whoever runs Pulumi.

    Raises:
        KubeconfigError: the login cannot be used.
    """
    text = context.as_json()
    public = without_credentials(text)
    return Platform(
        pulumi.Output.secret(text),
        pulumi.Output.secret(public),
        context.server,
        login=None if has_login(public) else pinned_login(login, text),
    )
