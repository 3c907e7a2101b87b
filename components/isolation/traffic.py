"""NetworkPolicies of a berth: traffic of its pods is denied unless a rule here allows it.

GKE enforces NetworkPolicies with Dataplane V2, which clusters of berth have. The policies govern a
pod's primary interface; RDMA NICs and additional networks are outside of them.
"""

from collections.abc import Iterable
from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest, manifest_of
from berth.components.core.owner import ENVIRONMENT_LABEL
from berth.components.isolation.inputs import IsolationInputs, NetworkPeer
from berth.components.isolation.pod_templates import autoscales
from berth.components.isolation.settings import IsolationSettings
from berth.components.operators import KubeRaySettings

# Ports of Ray (KubeRay v1.6.2, ray-operator/controllers/ray/utils/constant.go).
DASHBOARD = 8265
"""Port of a head's dashboard."""
SERVE_PORT = 8000
"""Port of Ray Serve."""

PRIVATE = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "240.0.0.0/4",
)
"""Address ranges that a VPC can use for nodes, pods and Services; no internet host has such an
address (https://docs.cloud.google.com/vpc/docs/subnets#valid-ranges)."""

_LINK_LOCAL = "169.254.0.0/16"
_ANYWHERE = "0.0.0.0/0"

# Workload Identity Federation, without and with Dataplane V2. Nodes with GKE's metadata server
# (GKE_METADATA), as berth's are, expose no credentials of their own there
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/network-policy).
_METADATA_SERVER = {"169.254.169.252/32": (987, 988), "169.254.169.254/32": (80, 8080)}
# No selector matches the API server. Ray listens on neither port, so other pods stay out of reach.
_API_SERVER_PORTS = (443, 6443)


def network_policies(
    namespace: str, manifests: Iterable[Manifest], inputs: IsolationInputs
) -> list[Manifest]:
    """Return the NetworkPolicies of a berth: for all pods, and for heads that need more.

    One policy serves most berths, because each object is stored three times in the state. So the
    callers of heads may reach the same ports of workers, where Ray has no dashboard.
    """
    contents = list(manifests)
    metadata = {"namespace": namespace, "labels": MANAGED_BY}
    of_pods = manifest_of(
        __file__,
        "pods",
        **metadata,
        operator=_operator(inputs.kuberay),
        callers=[{"from": [caller], "ports": tcp_ports(DASHBOARD)} for caller in inputs.callers],
        clients=[
            {"from": [pods_of_namespace(name)], "ports": tcp_ports(SERVE_PORT)}
            for name in inputs.clients
        ],
        outside=_outside(inputs.settings),
    )
    ingress = _from_load_balancers(contents)
    egress = [to_api_server()] if any(autoscales(manifest) for manifest in contents) else []
    types: list[str] = []
    if ingress:
        types.append("Ingress")
    if egress:
        types.append("Egress")
    if not types:
        return [of_pods]
    of_heads = manifest_of(
        __file__, "heads", **metadata, types=types, ingress=ingress or None, egress=egress or None
    )
    return [of_pods, of_heads]


def _operator(kuberay: KubeRaySettings) -> NetworkPeer:
    """Return the peer for requests of the KubeRay operator."""
    if kuberay.source == "addon":
        # GKE's add-on is behind konnectivity.
        return pods_of_namespace("kube-system", **{"k8s-app": "konnectivity-agent"})
    return pods_of_namespace(kuberay.namespace)


def _outside(settings: IsolationSettings) -> list[dict[str, Any]]:
    """Return the egress rules for what is outside of the berth."""
    rules: list[dict[str, Any]] = [{"to": [_block(_ANYWHERE, *PRIVATE, _LINK_LOCAL)]}]
    if settings.metadata_server:
        for address, ports in _METADATA_SERVER.items():
            rules.append({"to": [_block(address)], "ports": tcp_ports(*ports)})
    rules += [{"to": [_block(cidr)]} for cidr in settings.reachable]
    rules += [{"to": [pods_of_namespace(name)]} for name in settings.reachable_namespaces]
    return rules


def operator_policy(kuberay: KubeRaySettings) -> Manifest:
    """Return the NetworkPolicy of the KubeRay operator, which calls what a head redirects it to.

    Its HTTP client follows redirects and repeats method and body (kuberay v1.6.2,
    ray-operator/controllers/ray/utils/util.go), so a tenant could have it call hosts for them.
    """
    name = (kuberay.values or {}).get("nameOverride") or "kuberay-operator"
    return manifest_of(
        __file__,
        "operator",
        namespace=kuberay.namespace,
        labels=MANAGED_BY,
        name=name,
        environment_label=ENVIRONMENT_LABEL,
        api_server=to_api_server(),
    )


def to_api_server() -> dict[str, Any]:
    """Return the egress rule for the API server."""
    return {"to": [_block(_ANYWHERE, _LINK_LOCAL)], "ports": tcp_ports(*_API_SERVER_PORTS)}


def pods_of_namespace(namespace: str, **labels: str) -> NetworkPeer:
    """Return the peer for pods of a namespace: all pods, or those with the labels."""
    in_namespace = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    peer: NetworkPeer = {"namespaceSelector": in_namespace}
    if labels:
        peer["podSelector"] = {"matchLabels": labels}
    return peer


def tcp_ports(*ports: int) -> list[dict[str, Any]]:
    """Return TCP ports as a NetworkPolicy lists them."""
    return [{"protocol": "TCP", "port": port} for port in ports]


def _from_load_balancers(manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
    """Return ingress rules for load balancers: from the VPC if internal, else from anywhere."""
    rules = []
    for service in manifests:
        if service["kind"] != "Service" or service["spec"].get("type") != "LoadBalancer":
            continue
        annotations = service["metadata"].get("annotations") or {}
        internal = "networking.gke.io/load-balancer-type" in annotations
        sources = [_block(cidr) for cidr in (PRIVATE if internal else (_ANYWHERE,))]
        ports = [port["targetPort"] for port in service["spec"]["ports"]]
        rules.append({"from": sources, "ports": tcp_ports(*ports)})
    return rules


def _block(cidr: str, *excluded: str) -> NetworkPeer:
    """Return the peer for addresses of a range, without those of some ranges in it."""
    block: dict[str, Any] = {"cidr": cidr}
    if excluded:
        block["except"] = list(excluded)
    return {"ipBlock": block}
