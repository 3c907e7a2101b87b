"""Policy `restricted-control-plane`."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.core.manifest import value_at
from berth.components.plan.fleet import GKE_CLUSTER
from berth.stacks.policies.planned import as_list, google_name
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext

# A public range of more than 2^24 addresses is nobody's office: two halves are the internet, too.
_WIDEST_PREFIX = 8


def _open_control_planes(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    """Yield control planes that most of the internet can reach."""
    if resource.type != GKE_CLUSTER:
        return
    inputs = resource.inputs
    cluster = f"the control plane of cluster {google_name(resource)}"
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


POLICY = Policy(
    name="restricted-control-plane",
    asks=(
        "The control plane of a production environment's cluster has no public address, or"
        " named networks reach it."
    ),
    why=(
        "Everyone on the internet would reach the API server: a stolen credential, or a flaw"
        " before the log-in, would be enough."
    ),
    remedy=(
        "name the networks of your office and your CI in `cluster.authorizedNetworks`, or set"
        " `cluster.privateEndpoint: true`, or `dnsEndpoint: true` with `ipEndpoint: false`"
    ),
    judge=_open_control_planes,
    applies_to="environment",
    setting=("cluster", "authorizedNetworks"),
    production=True,
    rests_on=(
        ("cluster", "authorizedNetworks"),
        ("cluster", "privateEndpoint"),
        ("cluster", "ipEndpoint"),
    ),
)
