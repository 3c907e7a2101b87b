"""Service account of the nodes, with the roles that nodes need and no others."""

import pulumi
import pulumi_gcp as gcp

from berth.components.gke.explained import explained
from berth.components.gke.names import NODE_ROLES, account_id, address


class NodeAccount(pulumi.ComponentResource):
    """Service account that only the nodes of one cluster run as."""

    def __init__(self, name: str, project: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("berth:gke:NodeAccount", name, None, opts)
        hooks = pulumi.ResourceHookBinding(on_error=[explained(self, "node-account", project)])
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
                member=f"serviceAccount:{address(name, project)}",
                opts=pulumi.ResourceOptions(parent=self, hooks=hooks, depends_on=[account]),
            )
        self.register_outputs({})
