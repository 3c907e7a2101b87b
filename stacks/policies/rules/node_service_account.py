"""Policy `node-service-account`."""

from collections.abc import Iterator

from berth.components.core.manifest import value_at
from berth.components.plan.fleet import NODE_POOL
from berth.stacks.policies.planned import google_name
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext

# Compute Engine's default account, by GKE's word for it and by its address
# (https://docs.cloud.google.com/compute/docs/access/service-accounts#default_service_account).
_DEFAULT = "default"
_DEFAULTS_END = "-compute@developer.gserviceaccount.com"


def _pools_of_the_default_account(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    """Yield node pools that run as Compute Engine's default account, or as an unknown one."""
    if resource.type != NODE_POOL:
        return
    account = value_at(resource.inputs, "nodeConfig", "serviceAccount")
    if account in (None, "", _DEFAULT) or str(account).endswith(_DEFAULTS_END):
        yield Finding(
            f"the nodes of pool {google_name(resource)} run as Compute Engine's default account,"
            " with the scope cloud-platform"
        )
    elif "@" not in str(account):
        yield Finding(
            f"the nodes of pool {google_name(resource)} run as {account}, which may be any account"
        )


POLICY = Policy(
    name="node-service-account",
    asks="The nodes of a production environment run as a service account of their own.",
    why=(
        "Compute Engine's default account often may edit the whole project, and nodes have the"
        " scope cloud-platform: whoever gets out of a pod gets the project."
    ),
    remedy=(
        "set `cluster.nodeServiceAccount` to an account with"
        " roles/container.defaultNodeServiceAccount, or to `own`"
    ),
    judge=_pools_of_the_default_account,
    applies_to="environment",
    setting=("cluster", "nodeServiceAccount"),
    production=True,
    rests_on=(("cluster", "nodeServiceAccount"),),
)
