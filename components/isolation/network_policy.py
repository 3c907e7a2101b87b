"""NetworkPolicies: whom a berth's pods reach, and who reaches them. What is not let through is denied, both ways.

GKE enforces them with Dataplane V2, which berth's clusters have. They are about a pod's own interface: RDMA NICs and further networks
are not governed by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from berth.components.core.manifest import Manifest
from berth.components.isolation.templates import autoscales
from berth.components.operators.settings import KubeRaySettings
from berth.components.ray.workload_settings import SERVE_PORT

DASHBOARD, CLIENT, SERVE, METRICS = 8265, 10001, SERVE_PORT, 8080
"""Ray's ports of a head beside those of the cluster's own traffic, and of each pod's metrics (KubeRay v1.6.2,
ray-operator/controllers/ray/utils/constant.go)."""

PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "240.0.0.0/4")
"""Ranges that nodes, pods, Services and whatever else is in a VPC can be in
(https://docs.cloud.google.com/vpc/docs/subnets#valid-ranges), and no host of the internet is."""

_LINK_LOCAL = "169.254.0.0/16"
_ANYWHERE = "0.0.0.0/0"

# NodeLocal DNSCache, and the metadata server, which answers for Cloud DNS
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/nodelocal-dns-cache, …/how-to/cloud-dns).
_NAME_SERVERS = ("169.254.20.10/32", "169.254.169.254/32")
# Where Workload Identity Federation asks for a pod's own identity, without Dataplane V2 and with it
# (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/network-policy). Nodes of berth show pods nothing of their own there.
_METADATA_SERVER = {"169.254.169.252/32": (987, 988), "169.254.169.254/32": (80, 8080)}
# Its address is not one that a selector could name; pods and Services of others have nothing of Ray on these ports.
_API_SERVER = (443, 6443)

_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_HEAD = {"matchLabels": {"ray.io/node-type": "head"}}


def network_policies(
    namespace: str,
    labels: dict[str, str],
    manifests: Iterable[Manifest],
    kuberay: KubeRaySettings,
    reachable: Iterable[str] = (),
    clients: Iterable[str] = (),
) -> list[Manifest]:
    """A berth's NetworkPolicies: one for all of its pods, one more for its heads, and one for what a service's clients reach.

    Args:
        namespace: the berth's.
        labels: labels of the objects.
        manifests: what else is in the namespace: of Ray's kinds, and Services.
        kuberay: where the operator is from, and its namespace.
        reachable: private ranges that pods may reach.
        clients: namespaces whose pods may send requests to Ray Serve.
    """
    given = list(manifests)
    all_pods = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": [{"podSelector": {}}]},
            # Google's managed Prometheus collects from pods of this namespace.
            {"from": [_in_namespace("gmp-system")], "ports": _tcp(METRICS)},
        ],
        "egress": [
            {"to": [{"podSelector": {}}]},
            {"to": _name_servers(), "ports": _ports(("UDP", 53), ("TCP", 53))},
            {"to": [_block(_ANYWHERE, *PRIVATE, _LINK_LOCAL)]},
            *({"to": [_block(address)], "ports": _tcp(*ports)} for address, ports in _METADATA_SERVER.items()),
            *({"to": [_block(cidr)]} for cidr in reachable),
        ],
    }
    heads = {
        "podSelector": _HEAD,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": _operator(kuberay), "ports": _tcp(DASHBOARD, SERVE)},
            *_from_load_balancers(given),
        ],
    }
    # Without it no egress is let through either; an empty list the API server would forget, and each update bring back.
    if any(autoscales(each) for each in given):
        heads["egress"] = [{"to": [_block(_ANYWHERE, _LINK_LOCAL)], "ports": _tcp(*_API_SERVER)}]
    made = [_policy("pods", namespace, labels, all_pods), _policy("heads", namespace, labels, heads)]
    if peers := [_in_namespace(name) for name in clients]:
        # Any pod with a replica takes requests.
        spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": peers, "ports": _tcp(SERVE)}]}
        made.append(_policy("serve", namespace, labels, spec))
    return made


def _policy(name: str, namespace: str, labels: dict[str, str], spec: dict[str, Any]) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _operator(kuberay: KubeRaySettings) -> list[dict[str, Any]]:
    """Where the operator asks a head from. That of GKE's add-on is run by Google: it comes by the control plane's way to pods."""
    if kuberay.source == "addon":
        return [_in_namespace("kube-system", **{"k8s-app": "konnectivity-agent"})]
    return [_in_namespace(kuberay.namespace)]


def _from_load_balancers(manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
    """What load balancers of the namespace let through to heads: from the VPC, or from everywhere."""
    rules = []
    for service in manifests:
        if service["kind"] != "Service" or service["spec"].get("type") != "LoadBalancer":
            continue
        internal = "networking.gke.io/load-balancer-type" in (service["metadata"].get("annotations") or {})
        sources = [_block(cidr) for cidr in PRIVATE] if internal else [_block(_ANYWHERE)]
        rules.append({"from": sources, "ports": _tcp(*(port["targetPort"] for port in service["spec"]["ports"]))})
    return rules


def _name_servers() -> list[dict[str, Any]]:
    return [
        _in_namespace("kube-system", **{"k8s-app": "kube-dns"}),
        _in_namespace("kube-system", **{"k8s-app": "node-local-dns"}),
        *(_block(address) for address in _NAME_SERVERS),
    ]


def _in_namespace(name: str, **pods: str) -> dict[str, Any]:
    """A peer: the pods of a namespace, all or those with labels."""
    peer: dict[str, Any] = {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: name}}}
    return peer | ({"podSelector": {"matchLabels": pods}} if pods else {})


def _block(cidr: str, *but: str) -> dict[str, Any]:
    return {"ipBlock": {"cidr": cidr, **({"except": list(but)} if but else {})}}


def _tcp(*ports: int) -> list[dict[str, Any]]:
    return _ports(*(("TCP", port) for port in ports))


def _ports(*ports: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"protocol": protocol, "port": port} for protocol, port in ports]
