"""The judges: pure functions from planned resources to what is against a policy.

What is asked of Ray is asked of a RayCluster, and of those that a RayJob or a RayService would make. What a plan does not
know yet, or keeps secret, cannot be seen to be right, and so it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from berth.components.hardware.machines import MACHINES
from berth.components.hardware.names import CLAIMED_GPUS, CONFIG_LABEL, GPU_RESOURCE, POOL_LABEL, WHOLE_KEY
from berth.components.ray.manifest import INTERNAL_LOAD_BALANCER
from berth.stacks.policies import policy
from berth.stacks.policies.policy import House, Planned, Violation

RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
RAY_JOB = "kubernetes:ray.io/v1:RayJob"
RAY_SERVICE = "kubernetes:ray.io/v1:RayService"
SERVICE = "kubernetes:core/v1:Service"
GKE_CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"

# Where each kind has the RayCluster's spec (kuberay v1.6.2, ray-operator/apis/ray/v1).
_RAY = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}
_RAY_GROUP = "kubernetes:ray.io/"

# What lets requests in from outside the cluster, by the API group that it is of.
_GATES = {
    "networking.k8s.io": {"Ingress"},
    "extensions": {"Ingress"},
    "gateway.networking.k8s.io": {"Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute"},
    "networking.gke.io": {"MultiClusterIngress"},
}

Judge = Callable[[Planned, House], Iterable[str]]
"""What is wrong with one resource."""


def violations(planned: Iterable[Planned], house: House) -> list[Violation]:
    """Everything in a plan that is against a policy, waived or not.

    Args:
        planned: the resources that there would be; what is deleted is not among them.
        house: what else the policies need to know.
    """
    resources = list(planned)
    house = House(house.production, house.required_labels, house.waived, {**rdma_pools(resources), **house.rdma})
    return [
        Violation(name, resource.type, resource.name, message, house.waived.get(name, ""))
        for resource in resources
        for name, judge in _JUDGES.items()
        if house.production or not policy.POLICIES[name].production
        for message in judge(resource, house)
    ]


def rdma_pools(planned: Iterable[Planned]) -> dict[str, int]:
    """GPUs of one node, by name of each planned node pool whose nodes have their RDMA NICs."""
    found = {}
    for pool in planned:
        machine = MACHINES.get(str(_at(pool.inputs, "nodeConfig", "machineType")))
        if pool.type == NODE_POOL and machine and machine.rdma and _at(pool.inputs, "networkConfig"):
            further = _list(_at(pool.inputs, "networkConfig", "additionalNodeNetworkConfigs"))
            profile = _at(pool.inputs, "networkConfig", "acceleratorNetworkProfile")
            if profile or len(further) >= machine.gpus:
                found[str(pool.inputs.get("name") or pool.name)] = machine.gpus
    return found


def _private_dashboard(resource: Planned, _house: House) -> Iterator[str]:
    name = _object_name(resource)
    if resource.type == SERVICE:
        kind = _at(resource.inputs, "spec", "type")
        yield from _exposed(f"Service {name}", kind, _at(resource.inputs, "metadata", "annotations"))
    for spec in _ray_specs(resource):
        head, annotations = _at(spec, "headGroupSpec"), _at(spec, "headServiceAnnotations")
        own = _at(head, "headService")
        kind = _at(own, "spec", "type") or _at(head, "serviceType")
        notes = {**_mapping(_at(own, "metadata", "annotations")), **_mapping(annotations)}
        yield from _exposed(f"the head's Service of {name}", kind, notes)
        if _at(head, "enableIngress") not in (None, False):
            yield f"{name} has an Ingress (enableIngress), which lets the internet in; take it out"
    group, kind = _group_and_kind(resource.type)
    if kind in _GATES.get(group, ()):
        yield f"{kind} {name} lets requests in from outside the cluster; use `dashboard: internal`, or kubectl port-forward"


def _exposed(service: str, kind: Any, annotations: Any) -> Iterator[str]:
    if kind in (None, "", "ClusterIP"):
        return
    if kind != "LoadBalancer":
        yield f"{service} is of type {kind}, and so is reached from outside the cluster; ClusterIP is not"
        return
    (key, value), *_ = INTERNAL_LOAD_BALANCER.items()
    if _at(annotations, key) != value:
        yield (
            f"{service} is a load balancer with a public address, where everyone can send code to Ray; use"
            " `dashboard: internal` or `private`"
        )


def _ray_auth(resource: Planned, _house: House) -> Iterator[str]:
    for spec in _ray_specs(resource):
        name, mode = _object_name(resource), _at(spec, "authOptions", "mode")
        if mode != "token":
            told = "does not ask for a token" if mode in (None, "", "disabled") else f"has authOptions.mode {mode}"
            yield f"Ray of {name} {told}, so whoever reaches its head runs code as its owner; use `auth: token`"
        elif others := sorted({value for value in _auth_modes(spec) if value != "token"}):
            # KubeRay leaves the variable alone where a container has it (kuberay v1.6.2, SetContainerTokenAuthEnvVars).
            yield f"Ray of {name} has RAY_AUTH_MODE={', '.join(others)} in `env`, which outdoes `auth: token`; take it out"


def _rdma_whole(resource: Planned, house: House) -> Iterator[str]:
    for spec in _ray_specs(resource):
        for group in _list(_at(spec, "workerGroupSpecs")):
            pod = _at(group, "template", "spec")
            pool = _at(pod, "nodeSelector", POOL_LABEL)
            if not isinstance(pool, str) or pool not in house.rdma:
                continue
            if _at(group, "template", "metadata", "annotations", CLAIMED_GPUS):
                continue  # Each GPU that is claimed comes with its own NIC, and the others keep theirs.
            gpus, whole = _gpus(pod), house.rdma[pool]
            if gpus != whole:
                yield (
                    f"a worker of {_object_name(resource)} takes {gpus} of the {whole} GPUs of a node of pool {pool!r}, whose RDMA"
                    f" NICs go to one pod with all of them; take {whole}, or another pool"
                )
    if resource.type == NODE_POOL and (name := str(resource.inputs.get("name") or resource.name)) in house.rdma:
        config = _at(resource.inputs, "nodeConfig")
        shared = any(_at(each, "gpuSharingConfig") for each in _list(_at(config, "guestAccelerators")))
        if shared or _at(config, "labels", CONFIG_LABEL) not in (None, WHOLE_KEY):
            yield f"pool {name!r} has RDMA and shares its GPUs; a pod takes all GPUs and all NICs of a node, so share another's"


def _deletion_protection(resource: Planned, _house: House) -> Iterator[str]:
    # Left out, it is on: pulumi-gcp's default.
    if resource.type == GKE_CLUSTER and _at(resource.inputs, "deletionProtection") not in (None, True):
        yield (
            f"cluster {_cluster_name(resource)} of a production environment has no deletion protection; take"
            " `cluster.deletionProtection` out, or set it to true"
        )


def _required_labels(resource: Planned, house: House) -> Iterator[str]:
    if resource.type != GKE_CLUSTER:
        return
    labels = _mapping(_at(resource.inputs, "resourceLabels"))
    if missing := [label for label in house.required_labels if not labels.get(label)]:
        yield (
            f"cluster {_cluster_name(resource)} of a production environment lacks {_counted(missing)}; add"
            f" {'them' if len(missing) > 1 else 'it'} to `labels`"
        )


def _counted(labels: Sequence[str]) -> str:
    return f"label{'s' if len(labels) > 1 else ''} {', '.join(labels)}"


_JUDGES: dict[str, Judge] = {
    policy.PRIVATE_DASHBOARD: _private_dashboard,
    policy.RAY_AUTH: _ray_auth,
    policy.RDMA_WHOLE: _rdma_whole,
    policy.DELETION_PROTECTION: _deletion_protection,
    policy.REQUIRED_LABELS: _required_labels,
}


def _ray_specs(resource: Planned) -> Iterator[Mapping[str, Any]]:
    if resource.type.startswith(_RAY_GROUP):
        spec = _at(resource.inputs, *_RAY.get(_group_and_kind(resource.type)[1], ("",)))
        if isinstance(spec, Mapping):
            yield spec


def _auth_modes(spec: Mapping[str, Any]) -> Iterator[str]:
    groups = [_at(spec, "headGroupSpec"), *_list(_at(spec, "workerGroupSpecs"))]
    for group in groups:
        for container in _list(_at(group, "template", "spec", "containers")):
            for variable in _list(_at(container, "env")):
                if _at(variable, "name") == "RAY_AUTH_MODE":
                    yield str(_at(variable, "value"))


def _gpus(pod: Any) -> int:
    """GPUs that a pod asks for; shares of GPUs and MIG instances are none."""
    counts = [str(_at(each, "resources", "limits", GPU_RESOURCE) or 0) for each in _list(_at(pod, "containers"))]
    return sum(int(count) for count in counts if count.isdecimal())


def _group_and_kind(resource_type: str) -> tuple[str, str]:
    """`kubernetes:ray.io/v1:RayCluster` → `ray.io`, `RayCluster`."""
    module, _, kind = resource_type.removeprefix("kubernetes:").partition(":")
    return module.partition("/")[0], kind


def _object_name(resource: Planned) -> str:
    return str(_at(resource.inputs, "metadata", "name") or resource.name)


def _cluster_name(resource: Planned) -> str:
    return str(resource.inputs.get("name") or resource.name)


def _at(value: Any, *path: str) -> Any:
    for part in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
