"""ResourceQuotas and LimitRange: a berth's namespace gets what its RayCluster has by the settings, and a little more."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal

from berth.components.core.manifest import Manifest
from berth.components.core.types import parse_quantity
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.isolation.templates import Object, autoscales, templates
from berth.components.ray.condition import claimed_gpus_of

NAME = "berth"
"""Name of the ResourceQuota of cores, memory and GPUs, and of the LimitRange."""

# KubeRay's own containers (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go): Ray's autoscaler beside a head that has
# it, and what waits for the head before a worker's own containers start. A pod asks for the most of the two.
_AUTOSCALER = {"cpu": Decimal("0.5"), "memory": Decimal(512 * 2**20)}
_WAITING = {"cpu": Decimal("0.2"), "memory": Decimal(256 * 2**20)}

# What submits two RayJobs (KubeRay's default: 500m and 200Mi, at most 1Gi), and one pod to look around with.
_BESIDE = {"cpu": Decimal(2), "memory": Decimal(4 * 2**30)}

# What a container has that says nothing; a quota refuses pods that ask for nothing at all.
_DEFAULT_REQUEST = {"cpu": "100m", "memory": "256Mi"}
_DEFAULT_LIMIT = {"cpu": "1", "memory": "1Gi"}

Amounts = dict[str, Decimal]

_NONE = Decimal(0)


def resource_quota(
    namespace: str, labels: dict[str, str], manifests: Iterable[Manifest], withheld: Iterable[str]
) -> Manifest:
    """The most that all pods of a berth's namespace have together, and that no Service of it is reached from outside unasked.

    Args:
        namespace: the berth's.
        labels: labels of the object.
        manifests: what is in the namespace: of Ray's kinds, and Services.
        withheld: resources of GPUs that it gets none of, unless its pods ask for them.
    """
    given = list(manifests)
    requests: Amounts = dict.fromkeys(withheld, _NONE)
    memory_limits, claims = _BESIDE["memory"], 0
    for manifest in given:
        for kind, template, count in templates(manifest):
            beside = _AUTOSCALER if kind == "head" and autoscales(manifest) else {}
            asked = _asked(template["spec"], "requests", beside)
            if claimed := claimed_gpus_of(template):
                # NVIDIA's class of claimed GPUs calls them nvidia.com/gpu, and by that name a quota counts them (Kubernetes 1.36).
                asked = _sum(asked, {GPU_RESOURCE: Decimal(claimed)})
            requests = _sum(requests, {resource: count * amount for resource, amount in asked.items()})
            memory_limits += count * _asked(template["spec"], "limits", beside)["memory"]
            claims += count * len(template["spec"].get("resourceClaims") or [])
    requests = _sum(requests, _BESIDE)
    balancers = [each["spec"] for each in given if each["kind"] == "Service" and each["spec"]["type"] == "LoadBalancer"]
    hard = {
        **{f"requests.{resource}": _written(resource, amount) for resource, amount in sorted(requests.items())},
        "limits.memory": _written("memory", memory_limits),
        "count/resourceclaims.resource.k8s.io": str(claims),
        "services.loadbalancers": str(len(balancers)),
        # A load balancer takes a port of the nodes for each of its own.
        "services.nodeports": str(sum(len(each["ports"]) for each in balancers)),
    }
    metadata = {"name": NAME, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def rank_quota(namespace: str, labels: dict[str, str], priority: str) -> Manifest:
    """No pod of a namespace goes before those of others by a PriorityClass that its berth was not given, or by having none.

    Its name is all that the API server says of it when it refuses a pod.

    Args:
        namespace: the berth's.
        labels: labels of the object.
        priority: the PriorityClass of its pods.
    """
    others = {"scopeName": "PriorityClass", "operator": "NotIn", "values": [priority]}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": f"only-priority-class-{priority}", "namespace": namespace, "labels": labels},
        "spec": {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [others]}},
    }


def limit_range(namespace: str, labels: dict[str, str]) -> Manifest:
    """What containers have that name no resources.

    Args:
        namespace: the berth's.
        labels: labels of the object.
    """
    limits = [{"type": "Container", "defaultRequest": _DEFAULT_REQUEST, "default": _DEFAULT_LIMIT}]
    metadata = {"name": NAME, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": limits}}


def _asked(pod: Object, kind: str, beside: Amounts) -> Amounts:
    """What a pod asks for: the sum of its containers, or the most of one that runs before them."""
    most = dict(beside)
    for container in pod["containers"]:
        most = _sum(most, _amounts(container, kind))
    for before in (_WAITING, *(_amounts(container, kind) for container in pod.get("initContainers") or [])):
        most |= {resource: max(amount, most.get(resource, _NONE)) for resource, amount in before.items()}
    return most


def _sum(some: Amounts, more: Amounts) -> Amounts:
    return {resource: some.get(resource, _NONE) + more.get(resource, _NONE) for resource in {**some, **more}}


def _amounts(container: Object, kind: str) -> Amounts:
    resources = container.get("resources") or {}
    # Where one of the two is left out, Kubernetes takes the limit for the request.
    given = {**_DEFAULT_REQUEST, **(resources.get("limits") or {})} if kind == "requests" else dict(_DEFAULT_LIMIT)
    return {name: parse_quantity(str(amount)) for name, amount in (given | (resources.get(kind) or {})).items()}


def _written(resource: str, amount: Decimal) -> str:
    if resource == "memory":
        return f"{int((amount / 2**20).to_integral_value(ROUND_CEILING))}Mi"
    if amount == amount.to_integral_value():
        return str(int(amount))
    return f"{int((amount * 1000).to_integral_value(ROUND_CEILING))}m"
