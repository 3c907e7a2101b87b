"""ResourceQuota and LimitRange of a berth: the resources of its RayCluster and a reserve."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Literal

from berth.components.cluster.demand import claimed_gpus_of
from berth.components.core.manifest import MANAGED_BY, Manifest, unawaited
from berth.components.core.types import parse_quantity
from berth.components.hardware.names import DEVICE_CLASSES, GPU_RESOURCE
from berth.components.isolation.inputs import IsolationInputs
from berth.components.isolation.pod_templates import Object, autoscaler_of, pod_templates
from berth.components.isolation.settings import MOST_DISK

NAME = "berth"
"""Name of the ResourceQuota and of the LimitRange."""

# Container that KubeRay adds (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go): the init
# container of a worker that waits for the head.
_WAITING = {"resources": {"limits": {"cpu": "200m", "memory": "256Mi"}}}

DISK = "ephemeral-storage"
"""Resource of containers: files on the disk of their node."""

# Reserve for the submitters of two RayJobs (KubeRay's default: 500m and 200Mi, at most 1 core and
# 1Gi) and one debug pod; they may reserve less than the disk of a small node.
_RESERVE = {"cpu": Decimal(2), "memory": Decimal(4 * 2**30), DISK: Decimal(20 * 2**30)}
_CORES_AT_MOST = Decimal(4)
"""Reserve of limits of cores: four containers at their default limit, as many as memory allows."""

_HUGE_PAGES = ("hugepages-2Mi", "hugepages-1Gi")
"""Huge pages of nodes, in the sizes that GKE offers: 0 unless the settings ask for some."""

# Resources of a container that names none; a quota refuses pods without requests. The disk of a
# small node has room for the requests of a hundred heads.
_DEFAULT_REQUEST = {"cpu": "100m", "memory": "256Mi", DISK: "64Mi"}
DEFAULT_LIMIT = {"cpu": "1", "memory": "1Gi"}
"""Limits of a container that names none."""

# Room for objects that engineers create; RayJobs stay until somebody deletes them. Kubernetes knows
# the usage of a custom kind at the earliest half a minute after its definition, and refuses to
# create what it cannot count: "status unknown for quota" (Kubernetes 1.36,
# pkg/controller/resourcequota). So the first update would fail if a kind counted that the stack or
# KubeRay creates in the namespace. RayClusters are limited by their pods.
_ROOM = {"raycronjob": 10, "rayjob": 100, "rayservice": 10}
_MADE_BY_KUBERAY = {"raycronjob": {"rayjob"}}

# Room for pods and volume claims beside those of the settings.
_PODS = 20
_CLAIMS = 10

# What opens a berth to the outside: KubeRay creates them on demand.
_WAYS_IN = ("ingresses.networking.k8s.io", "gateways.gateway.networking.k8s.io")

# The provider never ends to wait for a quota without any entry.
_NO_LIMIT = {"pods": "1000000"}

Amounts = dict[str, Decimal]
_Kind = Literal["requests", "limits"]


@dataclass(frozen=True)
class _EqualPods:
    """Pods of one template."""

    template: Object
    count: int
    """Largest number of pods at a time."""
    by_kuberay: Sequence[Object]
    """Containers that KubeRay adds to each pod."""


def resource_quota(
    namespace: str, manifests: Iterable[Manifest], inputs: IsolationInputs
) -> Manifest:
    """Return the ResourceQuota that limits all pods together and refuses ways in from outside.

    The quota is 0 for GPU resources and device classes that no pod requests.
    """
    contents = list(manifests)
    pods = list(_pods_of(contents))
    hard = _compute_resources(pods, inputs)
    hard |= _volume_claims(contents, inputs)
    hard["pods"] = str(_PODS + sum(of_template.count for of_template in pods))
    for kind in _WAYS_IN:
        hard[f"count/{kind}"] = "0"
    hard |= _counts(contents)
    hard |= _resource_claims(pods, inputs)
    hard |= _services(contents)
    return _quota(namespace, hard, contents)


def _pods_of(contents: Iterable[Manifest]) -> Iterator[_EqualPods]:
    for manifest in contents:
        for kind, template, count in pod_templates(manifest):
            by_kuberay = autoscaler_of(manifest) if kind == "head" else []
            yield _EqualPods(template, count, by_kuberay)


def _compute_resources(pods: Iterable[_EqualPods], inputs: IsolationInputs) -> dict[str, str]:
    """Return the requests of all pods, with a reserve, and their limits of cores, memory and disks.

    Beyond its limit, a container of few requests could take all cores that its neighbors leave.
    """
    # Not by the size of nodes: pods that run count with the limit that they started with, and a
    # quota below their sum would refuse the pods that replace them.
    disk = inputs.settings.ephemeral_storage or MOST_DISK
    counted = {GPU_RESOURCE, *inputs.gpu_resources, *_HUGE_PAGES}
    requests: Amounts = dict.fromkeys(counted, Decimal(0))
    requests = _sum(requests, _RESERVE)
    limits: Amounts = {
        "cpu": _CORES_AT_MOST,
        "memory": _RESERVE["memory"],
        DISK: _PODS * parse_quantity(disk),
    }
    for of_template in pods:
        requests = _sum(requests, _demand(of_template, "requests", disk))
        limits = _sum(limits, _demand(of_template, "limits", disk))
    hard = {f"requests.{name}": _text(name, requests[name]) for name in sorted(requests)}
    for name in ("cpu", DISK, "memory"):
        hard[f"limits.{name}"] = _text(name, limits[name])
    return hard


def _volume_claims(contents: Iterable[Manifest], inputs: IsolationInputs) -> dict[str, str]:
    """Return the largest size and number of volume claims: those of the berth, and further ones."""
    storage = inputs.settings.storage
    sizes = [
        parse_quantity(manifest["spec"]["resources"]["requests"]["storage"])
        for manifest in contents
        if manifest["kind"] == "PersistentVolumeClaim"
    ]
    if sizes:
        storage = _text("memory", sum(sizes, parse_quantity(storage)))
    return {
        "requests.storage": storage,
        "persistentvolumeclaims": str(_CLAIMS + len(sizes)),
    }


def _services(contents: Iterable[Manifest]) -> dict[str, str]:
    """Return the number of load balancers; each takes one node port for each of its own ports."""
    specs = [manifest["spec"] for manifest in contents if manifest["kind"] == "Service"]
    balancers = [spec for spec in specs if spec["type"] == "LoadBalancer"]
    return {
        "services.loadbalancers": str(len(balancers)),
        "services.nodeports": str(sum(len(balancer["ports"]) for balancer in balancers)),
    }


def limit_range(namespace: str, disk: str) -> Manifest:
    """Return the LimitRange: resources of containers that name none, and the most of a disk.

    Args:
        namespace: the berth's namespace.
        disk: the most that one container may write to its node's disk, as a quantity.
    """
    of_containers = {
        "type": "Container",
        "defaultRequest": _DEFAULT_REQUEST,
        "default": {**DEFAULT_LIMIT, DISK: disk},
        "max": {DISK: disk},
    }
    return _object("LimitRange", namespace, {"limits": [of_containers]})


def without_limits(namespace: str, manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return a ResourceQuota and a LimitRange without limits, for berths without a quota.

    Pulumi deletes objects after it has created and awaited all others: a deleted quota would refuse
    the pods and Services that the same update waits for.
    """
    return [
        _quota(namespace, _NO_LIMIT, manifests),
        # The API server keeps an empty list as none at all, and every update would write it again.
        _object("LimitRange", namespace, {"limits": [{"type": "Container"}]}),
    ]


def _quota(namespace: str, hard: Mapping[str, str], contents: Iterable[Manifest]) -> Manifest:
    """Return a ResourceQuota that the provider awaits only where the namespace has a Service.

    Until usage is counted, the API server goes by the quota before. It refuses pods, and KubeRay
    tries again; nobody tries a Service again. The usage is a third of the quota's state.
    """
    quota = _object("ResourceQuota", namespace, {"hard": dict(hard)})
    if any(manifest["kind"] == "Service" for manifest in contents):
        return quota
    return unawaited(quota)


def _object(kind: str, namespace: str, spec: Object) -> Manifest:
    metadata = {"name": NAME, "namespace": namespace, "labels": MANAGED_BY}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


def _counts(contents: Iterable[Manifest]) -> dict[str, str]:
    """Return the largest number of objects by kind, for kinds that only engineers create here."""
    own = {manifest["kind"].lower() for manifest in contents}
    by_kuberay = [_MADE_BY_KUBERAY.get(kind, set()) for kind in own]
    own = own.union(*by_kuberay)
    return {f"count/{kind}s.ray.io": str(room) for kind, room in _ROOM.items() if kind not in own}


def _resource_claims(pods: Iterable[_EqualPods], inputs: IsolationInputs) -> dict[str, str]:
    """Return the largest number of claims, and of their devices by class.

    Kubernetes counts the devices of claims (KEP 4381), whatever their template is called.
    """
    claims = 0
    devices = dict.fromkeys(DEVICE_CLASSES, 0)
    for of_template in pods:
        for claim in of_template.template["spec"].get("resourceClaims") or []:
            claims += of_template.count
            of_claim = inputs.devices.get(claim.get("resourceClaimTemplateName", ""), {})
            for name in devices:
                devices[name] += of_template.count * of_claim.get(name, 0)
    hard = {"count/resourceclaims.resource.k8s.io": str(claims)}
    for name, count in devices.items():
        hard[f"{name}.deviceclass.resource.k8s.io/devices"] = str(count)
    return hard


def _demand(pods: _EqualPods, kind: _Kind, disk: str) -> Amounts:
    """Return requests or limits of all pods of a template."""
    of_one = _demand_of_pod(pods.template, kind, disk, pods.by_kuberay)
    return {resource: pods.count * amount for resource, amount in of_one.items()}


def _demand_of_pod(
    template: Object, kind: _Kind, disk: str, by_kuberay: Sequence[Object]
) -> Amounts:
    """Return requests or limits of a pod: its containers' sum, or its largest init container.

    An init container with `restartPolicy: Always` runs beside all that start after it
    (https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/).
    """
    sidecars: Amounts = {}
    before: Amounts = {}
    pod = template["spec"]
    # KubeRay's own init container comes after the template's.
    for container in (*(pod.get("initContainers") or []), _WAITING):
        amounts = _amounts(container, kind, disk)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, amounts)
        else:
            before = _largest(before, _sum(sidecars, amounts))
    containers = [*by_kuberay, *_containers_of_buckets(template), *pod["containers"]]
    running = _sum(*(_amounts(container, kind, disk) for container in containers), sidecars)
    amounts = _largest(running, before)
    claimed = claimed_gpus_of(template) if kind == "requests" else 0
    if claimed:
        # A quota counts claims of NVIDIA's device class under nvidia.com/gpu (Kubernetes 1.36).
        amounts = _sum(amounts, {GPU_RESOURCE: Decimal(claimed)})
    return amounts


def bucket_annotations(cpu: str, memory: str, disk: str) -> dict[str, str]:
    """Return the annotations of a pod that mounts buckets.

    GKE adds a container with these resources, which count against the quota
    (https://github.com/GoogleCloudPlatform/gcs-fuse-csi-driver, pkg/webhook/config.go and issue
    372).

    Args:
        cpu: request and limit of cores, as a quantity.
        memory: request and limit of memory, as a quantity.
        disk: request and limit of files on the node's disk, as a quantity.
    """
    annotations = {"gke-gcsfuse/volumes": "true"}
    for name, size in {"cpu": cpu, "memory": memory, DISK: disk}.items():
        annotations[f"gke-gcsfuse/{name}-request"] = size
        annotations[f"gke-gcsfuse/{name}-limit"] = size
    return annotations


def _containers_of_buckets(template: Object) -> list[Object]:
    """Return the container that GKE adds to a pod with buckets."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    if "gke-gcsfuse/volumes" not in annotations:
        return []
    names = ("cpu", "memory", DISK)
    requests = {name: annotations[f"gke-gcsfuse/{name}-request"] for name in names}
    limits = {name: annotations[f"gke-gcsfuse/{name}-limit"] for name in names}
    return [{"resources": {"requests": requests, "limits": limits}}]


def _largest(some: Amounts, more: Amounts) -> Amounts:
    """Return the larger amount of each resource."""
    return {
        name: max(some.get(name, Decimal(0)), more.get(name, Decimal(0))) for name in some | more
    }


def _sum(*parts: Amounts) -> Amounts:
    """Return the sum of amounts by resource."""
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _amounts(container: Object, kind: _Kind, disk: str) -> Amounts:
    resources = container.get("resources") or {}
    if kind == "requests":
        # Kubernetes takes a missing request from the limit.
        quantities = {**_DEFAULT_REQUEST, **(resources.get("limits") or {})}
    else:
        quantities = {**DEFAULT_LIMIT, DISK: disk}
    quantities |= resources.get(kind) or {}
    return {name: parse_quantity(str(quantity)) for name, quantity in quantities.items()}


def _text(resource: str, amount: Decimal) -> str:
    if resource in ("memory", DISK):
        return f"{int((amount / 2**20).to_integral_value(ROUND_CEILING))}Mi"
    if amount == amount.to_integral_value():
        return str(int(amount))
    return f"{int((amount * 1000).to_integral_value(ROUND_CEILING))}m"
