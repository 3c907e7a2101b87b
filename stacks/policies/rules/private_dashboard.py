"""Policy `private-dashboard`."""

from collections.abc import Iterator
from typing import Any

from berth.components.core.manifest import value_at
from berth.components.ray import INTERNAL_LOAD_BALANCER
from berth.stacks.policies.planned import as_mapping, group_and_kind, object_name, ray_specs
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext

# Kinds that let requests in from outside the cluster, by API group.
_GATES = {
    "networking.k8s.io": {"Ingress"},
    "extensions": {"Ingress"},
    "gateway.networking.k8s.io": {"Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute"},
    "networking.gke.io": {"MultiClusterIngress"},
}


def _ways_from_outside(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    """Yield ways from outside the cluster to a dashboard."""
    name = object_name(resource)
    group, kind = group_and_kind(resource)
    if (group, kind) == ("core", "Service"):
        service_type = value_at(resource.inputs, "spec", "type")
        yield from _exposed(
            f"Service {name}", service_type, value_at(resource.inputs, "metadata", "annotations")
        )
    for spec in ray_specs(resource):
        head = value_at(spec, "headGroupSpec")
        annotations = value_at(spec, "headServiceAnnotations")
        service = value_at(head, "headService")
        service_type = value_at(service, "spec", "type") or value_at(head, "serviceType")
        annotations = {
            **as_mapping(value_at(service, "metadata", "annotations")),
            **as_mapping(annotations),
        }
        yield from _exposed(f"the head's Service of {name}", service_type, annotations)
        if value_at(head, "enableIngress") not in (None, False):
            yield Finding(
                f"{name} has an Ingress (enableIngress), which lets the internet in", "remove it"
            )
    if kind in _GATES.get(group, ()):
        yield Finding(
            f"{kind} {name} lets requests in from outside the cluster",
            "use `dashboard: internal`, or kubectl port-forward",
        )


def _exposed(service: str, service_type: Any, annotations: Any) -> Iterator[Finding]:
    if service_type in (None, "", "ClusterIP"):
        return
    if service_type != "LoadBalancer":
        yield Finding(
            f"{service} is of type {service_type}, which is reachable from outside the cluster",
            "use ClusterIP",
        )
        return
    (key, value), *_ = INTERNAL_LOAD_BALANCER.items()
    if value_at(annotations, key) != value:
        yield Finding(
            f"{service} is a load balancer with a public address, where everyone can send code"
            " to Ray"
        )


POLICY = Policy(
    name="private-dashboard",
    asks=(
        "No Ray head is reachable from outside the VPC: no public load balancer, no node port,"
        " no Ingress or Gateway. An internal load balancer has an address of the VPC and is"
        " allowed."
    ),
    why=(
        "Ray's dashboard runs whatever code it is sent; a token is then the only protection"
        " against everyone."
    ),
    remedy="use `dashboard: internal` or `private`",
    judge=_ways_from_outside,
    applies_to="raycluster",
    setting=("dashboard",),
)
