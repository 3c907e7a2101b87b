"""ResourceQuota and LimitRange of a berth: the resources of its RayCluster and a reserve."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Literal

from berth.components.cluster.demand import claimed_gpus_of
from berth.components.core.manifest import MANAGED_BY, Manifest, unawaited
from berth.components.core.types import parse_quantity
from berth.components.hardware.names import DEVICE_CLASSES, GPU_RESOURCE
from berth.components.isolation.pod_templates import Object, autoscaler_of, pod_templates
from berth.components.isolation.settings import IsolationInputs

NAME = "berth"
"""Name of the ResourceQuota and of the LimitRange."""

# Container that KubeRay adds (kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go): the init
# container of a worker that waits for the head.
_WAITING = {"resources": {"limits": {"cpu": "200m", "memory": "256Mi"}}}

DISK = "ephemeral-storage"
"""Resource of containers: files on the disk of their node."""

# Reserve for the submitters of two RayJobs (KubeRay's default: 500m and 200Mi, at most 1Gi) and one
# debug pod; they may reserve less than the disk of a small node.
_RESERVE = {"cpu": Decimal(2), "memory": Decimal(4 * 2**30), DISK: Decimal(20 * 2**30)}

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


def resource_quota(
    namespace: str, manifests: Iterable[Manifest], inputs: IsolationInputs
) -> Manifest:
    """Return the ResourceQuota that limits all pods together and refuses ways in from outside.

    The quota is 0 for GPU resources and device classes that no pod requests.
    """
    contents, settings = list(manifests), inputs.settings
    disk = settings.ephemeral_storage
    pods = [
        (template, count, autoscaler_of(manifest) if kind == "head" else [])
        for manifest in contents
        for kind, template, count in pod_templates(manifest)
    ]
    requests = _sum(
        dict.fromkeys({GPU_RESOURCE, *inputs.gpu_resources}, Decimal(0)),
        _RESERVE,
        *(
            _times(count, _asked(template, "requests", disk, beside))
            for template, count, beside in pods
        ),
    )
    limits = _sum(
        {"memory": _RESERVE["memory"], DISK: _PODS * parse_quantity(disk)},
        *(
            _times(count, _asked(template, "limits", disk, beside))
            for template, count, beside in pods
        ),
    )
    disks = [
        manifest["spec"] for manifest in contents if manifest["kind"] == "PersistentVolumeClaim"
    ]
    storage = sum(
        (parse_quantity(spec["resources"]["requests"]["storage"]) for spec in disks), Decimal(0)
    )
    services = [manifest["spec"] for manifest in contents if manifest["kind"] == "Service"]
    balancers = [service for service in services if service["type"] == "LoadBalancer"]
    claims = [
        (claim, count)
        for template, count, _ in pods
        for claim in template["spec"].get("resourceClaims") or []
        if count
    ]
    hard = {
        **{
            f"requests.{resource}": _text(resource, amount)
            for resource, amount in sorted(requests.items())
        },
        **{
            f"limits.{resource}": _text(resource, limits[resource]) for resource in (DISK, "memory")
        },
        "requests.storage": (
            _text("memory", parse_quantity(settings.storage) + storage)
            if disks
            else settings.storage
        ),
        "persistentvolumeclaims": str(_CLAIMS + len(disks)),
        "pods": str(_PODS + sum(count for _, count, _ in pods)),
        **{f"count/{kind}": "0" for kind in _WAYS_IN},
        **_counts(contents),
        "count/resourceclaims.resource.k8s.io": str(sum(count for _, count in claims)),
        **_devices(claims, inputs),
        "services.loadbalancers": str(len(balancers)),
        # A load balancer takes one node port for each of its own ports.
        "services.nodeports": str(sum(len(balancer["ports"]) for balancer in balancers)),
    }
    return _quota(namespace, hard, contents)


def limit_range(namespace: str, disk: str) -> Manifest:
    """Return the LimitRange: resources of containers that name none, and the most of a disk."""
    most = {DISK: disk}
    limits = [
        {
            "type": "Container",
            "defaultRequest": _DEFAULT_REQUEST,
            "default": DEFAULT_LIMIT | most,
            "max": most,
        }
    ]
    return _object("LimitRange", namespace, {"limits": limits})


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
    return (
        quota if any(manifest["kind"] == "Service" for manifest in contents) else unawaited(quota)
    )


def _object(kind: str, namespace: str, spec: Object) -> Manifest:
    metadata = {"name": NAME, "namespace": namespace, "labels": MANAGED_BY}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


def _counts(contents: Iterable[Manifest]) -> dict[str, str]:
    """Return the largest number of objects by kind, for kinds that only engineers create here."""
    own = {manifest["kind"].lower() for manifest in contents}
    own = own.union(*(_MADE_BY_KUBERAY.get(kind, set()) for kind in own))
    return {f"count/{kind}s.ray.io": str(room) for kind, room in _ROOM.items() if kind not in own}


def _devices(claims: Sequence[tuple[Object, int]], inputs: IsolationInputs) -> dict[str, str]:
    """Return the largest number of devices by class, of claims with the number of their pods.

    Kubernetes counts the devices of claims (KEP 4381), whatever their template is called.
    """
    taken = [
        (inputs.devices.get(claim.get("resourceClaimTemplateName", ""), {}), count)
        for claim, count in claims
    ]
    return {
        f"{name}.deviceclass.resource.k8s.io/devices": str(
            sum(count * each.get(name, 0) for each, count in taken)
        )
        for name in DEVICE_CLASSES
    }


def _asked(template: Object, kind: _Kind, disk: str, by_kuberay: Sequence[Object]) -> Amounts:
    """Return requests or limits of a pod: its containers' sum, or its largest init container.

    An init container with `restartPolicy: Always` runs beside all that start after it
    (https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/).
    """
    beside: Amounts = {}
    before: Amounts = {}
    pod = template["spec"]
    # KubeRay's own init container comes after the template's.
    for container in (*(pod.get("initContainers") or []), _WAITING):
        amounts = _amounts(container, kind, disk)
        if container.get("restartPolicy") == "Always":
            beside = _sum(beside, amounts)
        else:
            before = _largest(before, _sum(beside, amounts))
    added = [*by_kuberay, *_of_buckets(template)]
    running = _sum(
        *(_amounts(container, kind, disk) for container in (*added, *pod["containers"])), beside
    )
    claimed = claimed_gpus_of(template) if kind == "requests" else 0
    # A quota counts claims of NVIDIA's device class under nvidia.com/gpu (Kubernetes 1.36).
    return _sum(_largest(running, before), {GPU_RESOURCE: Decimal(claimed)} if claimed else {})


def bucket_annotations(cpu: str, memory: str, disk: str) -> dict[str, str]:
    """Return the annotations of a pod that mounts buckets.

    GKE adds a container with these resources, which count against the quota
    (https://github.com/GoogleCloudPlatform/gcs-fuse-csi-driver, pkg/webhook/config.go and issue
    372).
    """
    sizes = {"cpu": cpu, "memory": memory, DISK: disk}
    resources = {
        f"gke-gcsfuse/{name}-{kind}": size
        for name, size in sizes.items()
        for kind in ("request", "limit")
    }
    return {"gke-gcsfuse/volumes": "true", **resources}


def _of_buckets(template: Object) -> list[Object]:
    """Return the container that GKE adds to a pod with buckets."""
    notes = (template.get("metadata") or {}).get("annotations") or {}
    if "gke-gcsfuse/volumes" not in notes:
        return []
    resources = {
        f"{kind}s": {name: notes[f"gke-gcsfuse/{name}-{kind}"] for name in ("cpu", "memory", DISK)}
        for kind in ("request", "limit")
    }
    return [{"resources": resources}]


def _largest(some: Amounts, more: Amounts) -> Amounts:
    return some | {
        resource: max(amount, some.get(resource, Decimal(0))) for resource, amount in more.items()
    }


def _sum(*parts: Amounts) -> Amounts:
    resources = dict.fromkeys(resource for part in parts for resource in part)
    return {
        name: sum((part.get(name, Decimal(0)) for part in parts), Decimal(0)) for name in resources
    }


def _times(count: int, amounts: Amounts) -> Amounts:
    return {resource: count * amount for resource, amount in amounts.items()}


def _amounts(container: Object, kind: _Kind, disk: str) -> Amounts:
    resources = container.get("resources") or {}
    # Kubernetes takes a missing request from the limit.
    default = (
        {**_DEFAULT_REQUEST, **(resources.get("limits") or {})}
        if kind == "requests"
        else {**DEFAULT_LIMIT, DISK: disk}
    )
    return {
        name: parse_quantity(str(amount))
        for name, amount in (default | (resources.get(kind) or {})).items()
    }


def _text(resource: str, amount: Decimal) -> str:
    if resource in ("memory", DISK):
        return f"{int((amount / 2**20).to_integral_value(ROUND_CEILING))}Mi"
    if amount == amount.to_integral_value():
        return str(int(amount))
    return f"{int((amount * 1000).to_integral_value(ROUND_CEILING))}m"
