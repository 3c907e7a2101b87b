"""Existing cluster: the platform of an environment that makes no cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes

from berth.components.cluster.provider import kubernetes_provider
from berth.components.core.errors import BadInputError
from berth.components.core.problems import Problem
from berth.components.core.project import path_of_setting
from berth.components.gke import ExistingCluster
from berth.stacks.files.stack_file import StackFile
from berth.stacks.load.stack import SettingsError
from berth.stacks.program.login import (
    KubeconfigError,
    has_login,
    one_context,
    own_login,
    pinned,
    without_credentials,
)

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
    login: ExistingCluster | None = None
    """Kubeconfig of the user who runs Pulumi, where `public` has no login."""

    def provider(self, name: str = CLUSTER) -> pulumi_kubernetes.Provider:
        """Register the provider of the cluster under a name of Pulumi."""
        if self.login is None:
            return kubernetes_provider(name, self.public, self.cluster_id)
        return kubernetes_provider(name, self.login.kubeconfig, self.cluster_id, self.login.context)


def existing(stack: str, settings: ExistingCluster, file: StackFile | None) -> Platform:
    """Return the platform of an existing cluster.

    Its id is the API server's address, until the cluster has a mark with another one.

    Raises:
        SettingsError: the kubeconfig cannot be used.
    """
    try:
        text, server = one_context(path_of_setting(settings.kubeconfig), settings.context)
        return owned(text, server, settings)
    except BadInputError as error:
        key = error.key if isinstance(error, KubeconfigError) else "kubeconfig"
        problem = Problem(("environment", "cluster", "existing", key), str(error))
        raise SettingsError(stack, [problem], file) from None


def on_cluster(text: str, cluster_id: pulumi.Input[str], named: ExistingCluster | None) -> Platform:
    """Return the platform of an engineer's stack: the environment's cluster, with the user's login.

    Raises:
        KubeconfigError: no kubeconfig of this machine logs in to the cluster.
    """
    full, login = own_login(text, named)
    pin = pinned(login, full) if login else None
    return Platform(pulumi.Output.secret(full), pulumi.Output.secret(text), cluster_id, login=pin)


def owned(kubeconfig: str, server: str, login: ExistingCluster | None) -> Platform:
    """Return the platform of a cluster that is reached by the login of whoever runs Pulumi."""
    public = without_credentials(kubeconfig)
    pin = pinned(login, kubeconfig) if login and not has_login(public) else None
    return Platform(
        pulumi.Output.secret(kubeconfig), pulumi.Output.secret(public), server, login=pin
    )
