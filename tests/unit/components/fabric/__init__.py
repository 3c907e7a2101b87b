"""Complete RayClusters on pools with a fabric, for tests of what is made of them."""

from typing import Any

from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.sharing import Pools
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_environment
from tests.unit.loaded import environment_of

CPU = {"machineType": "n2-standard-16", "nodes": 2}
A4 = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot"}
BY_NETWORKS = A4 | {"rdma": "networks"}
MANAGED = A4 | {"rdma": "managed"}
A4X = {
    "machineType": "a4x-highgpu-4g",
    "nodes": 2,
    "capacity": {"kind": "reservation", "reservation": "nvl"},
}
NVLINKED = A4X | {"rdma": "managed"}
PAIRED = BY_NETWORKS | {"gpuAllocation": "dra"}
PAIRED_MANAGED = MANAGED | {"gpuAllocation": "dra"}
CLAIMED = A4 | {"gpuAllocation": "dra"}

WAIVED = {"rdma-whole": "a test of the manifest alone"}


def environment(
    pool: dict[str, Any], kind: str, shape: dict[str, Any], name: str = "x"
) -> EnvironmentSettings:
    """An environment with one RayCluster, on one pool with GPUs."""
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": {"cpu": CPU, "train": pool},
        "policies": {"waived": WAIVED},
        kind: {name: shape},
    }
    return environment_of("test", values).settings


def complete(
    pool: dict[str, Any], kind: str, shape: dict[str, Any], name: str = "x"
) -> tuple[RayClusterSettings, Pools]:
    """One RayCluster with all defaults, and its pools."""
    resolved = resolve_environment(environment(pool, kind, shape, name))
    (cluster,) = [*resolved.berths, *resolved.clusters]
    return cluster, resolved.pools
