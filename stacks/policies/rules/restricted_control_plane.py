"""Policy `restricted-control-plane`."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.core.manifest import value_at
from berth.components.plan.fleet import GKE_CLUSTER
from berth.stacks.policies.planned import as_list, google_name
from berth.stacks.policies.policy import Finding, Planned, PolicyContext

# A public range of more than 2^24 addresses is nobody's office: two halves are the internet, too.
_WIDEST_PREFIX = 8


def judge(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    """Yield control planes that most of the internet can reach."""
    if resource.type != GKE_CLUSTER:
        return
    inputs, cluster = resource.inputs, f"the control plane of cluster {google_name(resource)}"
    # Without its addresses the control plane has a DNS name only: Google checks who calls, by IAM,
    # before a request reaches it.
    if value_at(inputs, "controlPlaneEndpointsConfig", "ipEndpointsConfig", "enabled") is False:
        return
    networks = value_at(inputs, "masterAuthorizedNetworksConfig")
    if value_at(networks, "gcpPublicCidrsAccessEnabled") not in (None, False):
        yield Finding(
            f"{cluster} can be reached from every public address of Google Cloud", "switch that off"
        )
    if value_at(inputs, "privateClusterConfig", "enablePrivateEndpoint") is True:
        return
    if not isinstance(networks, Mapping):
        yield Finding(f"{cluster} can be reached from the whole internet")
        return
    for block in as_list(networks.get("cidrBlocks")):
        if _is_open(cidr := value_at(block, "cidrBlock")):
            yield Finding(
                f"{cluster} can be reached from {cidr}, which is most of the internet",
                "name the networks of your office and your CI",
            )


def _is_open(cidr: Any) -> bool:
    """Return whether a range has too many public addresses, or cannot be read."""
    try:
        network = ipaddress.ip_network(str(cidr))
    except ValueError:
        return True
    # Python calls the whole internet private, since both its first and its last address are.
    return network.prefixlen < _WIDEST_PREFIX
