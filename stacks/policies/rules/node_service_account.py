"""Policy `node-service-account`."""

from collections.abc import Iterator

from berth.components.core.manifest import value_at
from berth.components.plan.fleet import NODE_POOL
from berth.stacks.policies.planned import google_name
from berth.stacks.policies.policy import Finding, Planned, PolicyContext

# Compute Engine's default account, by GKE's word for it and by its address
# (https://docs.cloud.google.com/compute/docs/access/service-accounts#default_service_account).
_DEFAULT, _DEFAULTS_END = "default", "-compute@developer.gserviceaccount.com"


def judge(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
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
