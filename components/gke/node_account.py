"""Component of the service account that the nodes of a cluster run as."""

import pulumi
import pulumi_gcp as gcp

from berth.components.gke.accounts import NODE_ROLES, account_address, account_id
from berth.components.gke.errors.hook import error_hook


class NodeAccount(pulumi.ComponentResource):
    """Service account that only the nodes of one cluster run as, with the roles that they need."""

    def __init__(self, name: str, project: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("berth:gke:NodeAccount", name, None, opts)
        hooks = pulumi.ResourceHookBinding(on_error=[error_hook(self, "node-account", project)])
        account = gcp.serviceaccount.Account(
            f"{name}-nodes",
            account_id=account_id(name),
            project=project,
            display_name=f"berth: nodes of cluster {name}",
            opts=pulumi.ResourceOptions(parent=self, hooks=hooks),
        )
        for role in NODE_ROLES:
            gcp.projects.IAMMember(
                f"{name}-nodes-{role.rpartition('/')[2]}",
                project=project,
                role=role,
                # Written out, so that a plan shows it before the account exists.
                member=f"serviceAccount:{account_address(name, project)}",
                opts=pulumi.ResourceOptions(parent=self, hooks=hooks, depends_on=[account]),
            )
        self.register_outputs({})
