"""Policy `node-service-account`."""

from collections.abc import Iterator

from berth.components.plan.fleet import NODE_POOL
from berth.stacks.policies.planned import at, google_name
from berth.stacks.policies.policy import Finding, Planned, PolicyContext, described

# Compute Engine's default account, by GKE's word for it and by its address
# (https://docs.cloud.google.com/compute/docs/access/service-accounts#default_service_account).
_DEFAULT, _DEFAULTS_END = "default", "-compute@developer.gserviceaccount.com"


def _judge(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    if resource.type != NODE_POOL:
        return
    account = at(resource.inputs, "nodeConfig", "serviceAccount")
    if account in (None, "", _DEFAULT) or str(account).endswith(_DEFAULTS_END):
        yield Finding(
            f"the nodes of pool {google_name(resource)} run as Compute Engine's default account, with the scope"
            " cloud-platform"
        )
    elif "@" not in str(account):
        yield Finding(f"the nodes of pool {google_name(resource)} run as {account}, which may be any account")


POLICY = described(__file__, _judge)
