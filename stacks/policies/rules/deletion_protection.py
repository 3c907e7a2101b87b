"""Policy `deletion-protection`."""

from collections.abc import Iterator

from berth.components.core.manifest import value_at
from berth.components.plan.fleet import GKE_CLUSTER
from berth.stacks.policies.planned import google_name
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext


def _unprotected_clusters(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    """Yield clusters without deletion protection."""
    # pulumi-gcp's default is on, so a cluster without the property is protected.
    if resource.type == GKE_CLUSTER and value_at(resource.inputs, "deletionProtection") not in (
        None,
        True,
    ):
        yield Finding(
            f"cluster {google_name(resource)} of a production environment has no deletion"
            " protection"
        )


POLICY = Policy(
    name="deletion-protection",
    asks="A production environment's cluster has deletion protection.",
    why=(
        "One `pulumi destroy`, or an edit that replaces the cluster, would end everything that"
        " runs on it."
    ),
    remedy="remove `cluster.deletionProtection`, or set it to true",
    judge=_unprotected_clusters,
    applies_to="environment",
    setting=("cluster", "deletionProtection"),
    production=True,
)
