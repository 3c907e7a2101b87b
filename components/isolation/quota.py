"""ResourceQuotas and LimitRange of a berth: the resources of its RayCluster and a reserve."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal

from berth.components.cluster.gpus import claimed_gpus_of
from berth.components.core.manifest import Manifest
from berth.components.core.types import parse_quantity
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.isolation.pod_templates import Object, autoscales, pod_templates

NAME = "berth"
"""Name of the ResourceQuota of cores, memory and GPUs, and of the LimitRange."""

# Containers that KubeRay adds (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go): the
# autoscaler beside a head, and the init container of a worker that waits for the head.
_AUTOSCALER = {"cpu": Decimal("0.5"), "memory": Decimal(512 * 2**20)}
_WAITING = {"cpu": Decimal("0.2"), "memory": Decimal(256 * 2**20)}

# Reserve for the submitters of two RayJobs (KubeRay's default: 500m and 200Mi, at most 1Gi) and one
# debug pod.
_RESERVE = {"cpu": Decimal(2), "memory": Decimal(4 * 2**30)}

# Resources of a container that names none; a quota refuses pods without requests.
_DEFAULT_REQUEST = {"cpu": "100m", "memory": "256Mi"}
_DEFAULT_LIMIT = {"cpu": "1", "memory": "1Gi"}

Amounts = dict[str, Decimal]


def resource_quota(
    namespace: str, labels: dict[str, str], manifests: Iterable[Manifest], withheld: Iterable[str]
) -> Manifest:
    """Return the ResourceQuota that limits all pods together and refuses other load balancers.

    Args:
        namespace: namespace of the berth.
        labels: labels of the object.
        manifests: pod-making manifests and Services of the namespace.
        withheld: GPU resources whose quota is 0 unless the pods request them.
    """
    contents = list(manifests)
    requests: Amounts = dict.fromkeys(withheld, Decimal(0))
    memory_limits, claims = _RESERVE["memory"], 0
    for manifest in contents:
        for kind, template, count in pod_templates(manifest):
            beside = _AUTOSCALER if kind == "head" and autoscales(manifest) else {}
            asked = _asked(template["spec"], "requests", beside)
            if claimed := claimed_gpus_of(template):
                # A quota counts claims of NVIDIA's device class under nvidia.com/gpu (Kubernetes
                # 1.36).
                asked = _sum(asked, {GPU_RESOURCE: Decimal(claimed)})
            requests = _sum(requests, {resource: count * amount for resource, amount in asked.items()})
            memory_limits += count * _asked(template["spec"], "limits", beside)["memory"]
            claims += count * len(template["spec"].get("resourceClaims") or [])
    requests = _sum(requests, _RESERVE)
    services = [manifest["spec"] for manifest in contents if manifest["kind"] == "Service"]
    balancers = [service for service in services if service["type"] == "LoadBalancer"]
    hard = {
        **{f"requests.{resource}": _text(resource, amount) for resource, amount in sorted(requests.items())},
        "limits.memory": _text("memory", memory_limits),
        "count/resourceclaims.resource.k8s.io": str(claims),
        "services.loadbalancers": str(len(balancers)),
        # A load balancer takes one node port for each of its own ports.
        "services.nodeports": str(sum(len(balancer["ports"]) for balancer in balancers)),
    }
    return _object("ResourceQuota", NAME, namespace, labels, {"hard": hard})


def priority_quota(namespace: str, labels: dict[str, str], priority: str) -> Manifest:
    """Return the ResourceQuota that refuses pods of any PriorityClass but the berth's.

    The API server names only the quota when it refuses a pod, so the name says what is allowed.
    """
    others = {"scopeName": "PriorityClass", "operator": "NotIn", "values": [priority]}
    spec = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [others]}}
    return _object("ResourceQuota", f"only-priority-class-{priority}", namespace, labels, spec)


def limit_range(namespace: str, labels: dict[str, str]) -> Manifest:
    """Return the LimitRange with the resources of containers that name none."""
    limits = [{"type": "Container", "defaultRequest": _DEFAULT_REQUEST, "default": _DEFAULT_LIMIT}]
    return _object("LimitRange", NAME, namespace, labels, {"limits": limits})


def _object(kind: str, name: str, namespace: str, labels: dict[str, str], spec: Object) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


def _asked(pod: Object, kind: str, beside: Amounts) -> Amounts:
    """Return requests or limits of a pod: its containers' sum, or its largest init container."""
    most = dict(beside)
    for container in pod["containers"]:
        most = _sum(most, _amounts(container, kind))
    for before in (_WAITING, *(_amounts(container, kind) for container in pod.get("initContainers") or [])):
        most |= {resource: max(amount, most.get(resource, Decimal(0))) for resource, amount in before.items()}
    return most


def _sum(some: Amounts, more: Amounts) -> Amounts:
    return {resource: some.get(resource, Decimal(0)) + more.get(resource, Decimal(0)) for resource in {**some, **more}}


def _amounts(container: Object, kind: str) -> Amounts:
    resources = container.get("resources") or {}
    # Kubernetes takes a missing request from the limit.
    default = {**_DEFAULT_REQUEST, **(resources.get("limits") or {})} if kind == "requests" else dict(_DEFAULT_LIMIT)
    return {name: parse_quantity(str(amount)) for name, amount in (default | (resources.get(kind) or {})).items()}


def _text(resource: str, amount: Decimal) -> str:
    if resource == "memory":
        return f"{int((amount / 2**20).to_integral_value(ROUND_CEILING))}Mi"
    if amount == amount.to_integral_value():
        return str(int(amount))
    return f"{int((amount * 1000).to_integral_value(ROUND_CEILING))}m"
