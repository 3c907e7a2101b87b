"""Readers of planned resources, which every judge uses.

Ray's policies judge a RayCluster and the RayCluster that a RayJob or RayService would create. A
value that is secret, or not known yet, cannot be shown to be right, so it counts as wrong.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from berth.components.core.manifest import value_at
from berth.components.hardware.machines import MACHINES
from berth.components.plan.fleet import GKE_CLUSTER, NODE_POOL
from berth.stacks.policies.policy import Planned

# Where each kind has the RayCluster's spec (kuberay v1.6.2, ray-operator/apis/ray/v1).
_RAY = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}
_RAY_GROUP = "ray.io"

at = value_at
"""Name by which policies of projects import `value_at` from here."""


def gke_cluster(name: str, arguments: Mapping[str, Any]) -> Planned:
    """Return a GKE cluster as the engine plans it, from the arguments of its registration."""
    return Planned(GKE_CLUSTER, name, {"name": name, **_in_camel_case(arguments)})


def node_pool(name: str, node_config: Mapping[str, Any]) -> Planned:
    """Return a node pool as the engine plans it, with those arguments that all pools share."""
    shared = {
        key: node_config[key] for key in ("service_account", "oauth_scopes") if key in node_config
    }
    return Planned(NODE_POOL, name, {"name": name, "nodeConfig": _in_camel_case(shared)})


def _in_camel_case(value: Any) -> Any:
    """Return arguments with the engine's names; the keys of labels are the user's own."""
    if isinstance(value, Mapping):
        return {
            to_camel(key): inner if key == "resource_labels" else _in_camel_case(inner)
            for key, inner in value.items()
        }
    return [_in_camel_case(item) for item in value] if isinstance(value, list) else value


def ray_specs(resource: Planned) -> Iterator[Mapping[str, Any]]:
    """Yield the RayCluster's spec that a resource has, if it has one."""
    group, kind = group_and_kind(resource)
    if group == _RAY_GROUP:
        spec = value_at(resource.inputs, *_RAY.get(kind, ("",)))
        if isinstance(spec, Mapping):
            yield spec


def rdma_pools(planned: Iterable[Planned]) -> dict[str, int]:
    """Return the GPUs of one node, by name of each planned node pool whose nodes have RDMA NICs."""
    gpus_per_node = {}
    for pool in planned:
        machine = MACHINES.get(str(value_at(pool.inputs, "nodeConfig", "machineType")))
        if (
            pool.type == NODE_POOL
            and machine
            and machine.rdma
            and value_at(pool.inputs, "networkConfig")
        ):
            further = as_list(
                value_at(pool.inputs, "networkConfig", "additionalNodeNetworkConfigs")
            )
            profile = value_at(pool.inputs, "networkConfig", "acceleratorNetworkProfile")
            if profile or len(further) >= machine.gpus:
                gpus_per_node[google_name(pool)] = machine.gpus
    return gpus_per_node


def group_and_kind(resource: Planned) -> tuple[str, str]:
    """Return API group and kind: `ray.io` and `RayCluster` of `kubernetes:ray.io/v1:RayCluster`."""
    module, _, kind = resource.type.removeprefix("kubernetes:").partition(":")
    return module.partition("/")[0], kind


def object_name(resource: Planned) -> str:
    """Return the name of a Kubernetes object."""
    return str(value_at(resource.inputs, "metadata", "name") or resource.name)


def google_name(resource: Planned) -> str:
    """Return the name of a resource of Google Cloud."""
    return str(resource.inputs.get("name") or resource.name)


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a value that is a mapping; an empty one for any other."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """Return a value that is a list; an empty one for any other."""
    return value if isinstance(value, list) else []
