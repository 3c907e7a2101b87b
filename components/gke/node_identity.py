"""Service account of the nodes, with the roles that nodes need and no others."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from berth.components.gke.explained import explained
from berth.components.gke.node_account_name import ROLES, account_id, address


@dataclass(frozen=True)
class NodeAccountInputs:
    """Inputs of the account.

    Attributes:
        project: project of the account and its roles.
    """

    project: str


class NodeAccount(pulumi.ComponentResource):
    """Service account that only the nodes of one cluster run as."""

    def __init__(self, name: str, inputs: NodeAccountInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register the account and its roles.

        Args:
            name: the cluster's name.
            inputs: the project.
            opts: Pulumi's options.
        """
        super().__init__("berth:gke:NodeAccount", name, None, opts)
        hooks = pulumi.ResourceHookBinding(on_error=[explained(self, "node-account", inputs.project)])
        account = gcp.serviceaccount.Account(
            f"{name}-nodes",
            account_id=account_id(name),
            project=inputs.project,
            display_name=f"berth: nodes of cluster {name}",
            opts=pulumi.ResourceOptions(parent=self, hooks=hooks),
        )
        for role in ROLES:
            gcp.projects.IAMMember(
                f"{name}-nodes-{role.rpartition('/')[2]}",
                project=inputs.project,
                role=role,
                # Written out, so that a plan shows it before the account exists.
                member=f"serviceAccount:{address(name, inputs.project)}",
                opts=pulumi.ResourceOptions(parent=self, hooks=hooks, depends_on=[account]),
            )
        self.register_outputs({})
