"""NetworkPolicies of a berth: traffic of its pods is denied unless a rule here allows it.

GKE enforces NetworkPolicies with Dataplane V2, which clusters of berth have. The policies govern a
pod's primary interface; RDMA NICs and additional networks are outside of them.
"""

from collections.abc import Iterable
from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.owner import ENVIRONMENT_LABEL
from berth.components.isolation.pod_templates import autoscales
from berth.components.isolation.settings import IsolationInputs
from berth.components.operators import KubeRaySettings

DASHBOARD, SERVE_PORT, METRICS = 8265, 8000, 8080
"""Ports of Ray: a head's dashboard, Ray Serve, and every pod's metrics (KubeRay v1.6.2,
ray-operator/controllers/ray/utils/constant.go)."""

PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "240.0.0.0/4")
"""Address ranges that a VPC can use for nodes, pods and Services; no internet host has such an
address (https://docs.cloud.google.com/vpc/docs/subnets#valid-ranges)."""

_LINK_LOCAL = "169.254.0.0/16"
_ANYWHERE = "0.0.0.0/0"

# NodeLocal DNSCache, and the metadata server, which answers for Cloud DNS
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/nodelocal-dns-cache,
# …/how-to/cloud-dns).
_NAME_SERVERS = ("169.254.20.10/32", "169.254.169.254/32")
_DNS = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
# Workload Identity Federation, without and with Dataplane V2. Nodes with GKE's metadata server
# (GKE_METADATA), as berth's are, expose no credentials of their own there
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/network-policy).
_METADATA_SERVER = {"169.254.169.252/32": (987, 988), "169.254.169.254/32": (80, 8080)}
# No selector matches the API server. Ray listens on neither port, so other pods stay out of reach.
_API_SERVER_PORTS = (443, 6443)

_HEAD = {"matchLabels": {"ray.io/node-type": "head"}}


def network_policies(namespace: str, manifests: Iterable[Manifest], inputs: IsolationInputs) -> list[Manifest]:
    """Return the NetworkPolicies of a berth: for all pods, and for heads that need more.

    One policy serves most berths, because each object is stored three times in the state. So the
    callers of heads may reach the same ports of workers, where Ray has no dashboard.
    """
    contents, settings = list(manifests), inputs.settings
    metadata_addresses = _METADATA_SERVER if settings.metadata_server else {}
    metadata = {"namespace": namespace, "labels": MANAGED_BY}
    all_pods = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": [{"podSelector": {}}]},
            # Google's managed Prometheus collects metrics from this namespace.
            {"from": [peer("gmp-system")], "ports": tcp(METRICS)},
            {"from": [_operator(inputs.kuberay)], "ports": tcp(DASHBOARD, SERVE_PORT)},
            *({"from": [caller], "ports": tcp(DASHBOARD)} for caller in inputs.callers),
            # Every pod with a replica takes requests.
            *({"from": [peer(name)], "ports": tcp(SERVE_PORT)} for name in inputs.clients),
        ],
        "egress": [
            {"to": [{"podSelector": {}}]},
            {"to": _name_servers(), "ports": _DNS},
            {"to": [_block(_ANYWHERE, *PRIVATE, _LINK_LOCAL)]},
            *({"to": [_block(address)], "ports": tcp(*ports)} for address, ports in metadata_addresses.items()),
            *({"to": [_block(cidr)]} for cidr in settings.reachable),
        ],
    }
    policies = [network_policy({"name": "pods", **metadata}, all_pods)]
    of_heads = {
        "Ingress": _from_load_balancers(contents),
        "Egress": [to_api_server()] if any(autoscales(manifest) for manifest in contents) else [],
    }
    if types := [kind for kind, rules in of_heads.items() if rules]:
        # The API server drops empty lists, which every update would add again.
        rules = {kind.lower(): of_heads[kind] for kind in types}
        policies.append(
            network_policy({"name": "heads", **metadata}, {"podSelector": _HEAD, "policyTypes": types, **rules})
        )
    return policies


def operator_policy(kuberay: KubeRaySettings) -> Manifest:
    """Return the NetworkPolicy of the KubeRay operator, which calls what a head redirects it to.

    Its HTTP client follows redirects and repeats method and body (kuberay v1.6.2,
    ray-operator/controllers/ray/utils/util.go), so a tenant could have it call hosts for them.
    """
    name = (kuberay.values or {}).get("nameOverride") or "kuberay-operator"
    berths = {"namespaceSelector": {"matchExpressions": [{"key": ENVIRONMENT_LABEL, "operator": "Exists"}]}}
    spec = {
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
        "policyTypes": ["Egress"],
        "egress": [
            {"to": [berths | {"podSelector": _HEAD}], "ports": tcp(DASHBOARD, SERVE_PORT)},
            {"to": _name_servers(), "ports": _DNS},
            to_api_server(),
        ],
    }
    return network_policy({"name": "kuberay-operator", "namespace": kuberay.namespace, "labels": MANAGED_BY}, spec)


def network_policy(metadata: dict[str, Any], spec: dict[str, Any]) -> Manifest:
    """Return a NetworkPolicy."""
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def to_api_server() -> dict[str, Any]:
    """Return the egress rule for the API server."""
    return {"to": [_block(_ANYWHERE, _LINK_LOCAL)], "ports": tcp(*_API_SERVER_PORTS)}


def peer(namespace: str, **pods: str) -> dict[str, Any]:
    """Return the peer for pods of a namespace: all pods, or those with the labels."""
    selector: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    return selector | ({"podSelector": {"matchLabels": pods}} if pods else {})


def tcp(*ports: int) -> list[dict[str, Any]]:
    """Return TCP ports as a NetworkPolicy lists them."""
    return [{"protocol": "TCP", "port": port} for port in ports]


def _operator(kuberay: KubeRaySettings) -> dict[str, Any]:
    """Return the peer of the operator's requests; the add-on is behind konnectivity."""
    if kuberay.source == "addon":
        return peer("kube-system", **{"k8s-app": "konnectivity-agent"})
    return peer(kuberay.namespace)


def _from_load_balancers(manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
    """Return ingress rules for load balancers: from the VPC if internal, else from anywhere."""
    rules = []
    for service in manifests:
        if service["kind"] != "Service" or service["spec"].get("type") != "LoadBalancer":
            continue
        internal = "networking.gke.io/load-balancer-type" in (service["metadata"].get("annotations") or {})
        sources = [_block(cidr) for cidr in (PRIVATE if internal else (_ANYWHERE,))]
        rules.append({"from": sources, "ports": tcp(*(port["targetPort"] for port in service["spec"]["ports"]))})
    return rules


def _name_servers() -> list[dict[str, Any]]:
    apps = {"key": "k8s-app", "operator": "In", "values": ["kube-dns", "node-local-dns"]}
    in_cluster = peer("kube-system") | {"podSelector": {"matchExpressions": [apps]}}
    return [in_cluster, *(_block(address) for address in _NAME_SERVERS)]


def _block(cidr: str, *excluded: str) -> dict[str, Any]:
    return {"ipBlock": {"cidr": cidr, **({"except": list(excluded)} if excluded else {})}}
