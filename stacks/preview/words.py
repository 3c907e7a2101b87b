"""Words for types of resources. Pure."""

import re

WORDS: dict[str, str] = {
    "gcp:container/nodePool:NodePool": "node pool",
    "gcp:container/cluster:Cluster": "GKE cluster",
    "gcp:compute/network:Network": "VPC network",
    "gcp:compute/subnetwork:Subnetwork": "subnetwork",
    "gcp:compute/firewall:Firewall": "firewall rule",
    "gcp:compute/router:Router": "Cloud Router",
    "gcp:compute/routerNat:RouterNat": "Cloud NAT",
    "gcp:compute/resourcePolicy:ResourcePolicy": "placement policy",
    "kubernetes:helm.sh/v3:Release": "Helm release",
}
"""Words for types of resources, in the order in which a component shows its changes."""


def word_of(resource_type: str) -> str:
    """Return the word for a resource's type: `node pool`, `RayCluster`, `Helm release`."""
    if resource_type in WORDS:
        return WORDS[resource_type]
    if resource_type.startswith("kubernetes:"):
        return kind_of(resource_type)  # a name
    return spaced(kind_of(resource_type))


def kind_of(resource_type: str) -> str:
    """Return the last part of a type: `NodePool` of `gcp:container/nodePool:NodePool`."""
    return resource_type.rsplit(":", 1)[-1]


def spaced(kind: str) -> str:
    """Return a kind as words: `node pool` for `NodePool`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", kind).lower()
