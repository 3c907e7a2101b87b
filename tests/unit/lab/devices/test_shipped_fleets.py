"""berth's labels, values and DaemonSets of shipped stacks meet the lab's GPU programs.

The programs follow the recordings of the real operator (test_recorded_operator.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.components.operators import GpuOperator, Site
from berth.components.operators.driver_installer import driver_installer
from berth.components.sharing import Pool, node_labels, offered
from berth.stacks.files import stack_file
from berth.stacks.load.stack import load
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.lab.devices.small_cluster import NAMESPACE, TOLERATED, World

STACKS = Path(__file__).resolve().parents[4] / "stacks"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TAINTED = {
    "machineType": "a4-highgpu-8g",
    "nodes": 1,
    "sharing": "any",
    "taints": [{"key": "dedicated", "value": "ml"}],
}


@pytest.fixture
def world() -> World:
    return World()


def node(world: World, pool: Pool) -> None:
    """A node as GKE makes it of what berth asks for."""
    settings, machine = pool.settings, pool.settings.machine
    labels = node_labels(pool) | {
        "cloud.google.com/gke-nodepool": pool.name,
        "cloud.google.com/gke-os-distribution": settings.node_image,
    }
    if machine.gpus:
        labels |= {
            "cloud.google.com/gke-accelerator": machine.gpu.accelerator,
            "cloud.google.com/gke-accelerator-count": str(machine.gpus),
        }
        if not settings.by_operator and not settings.by_dra:
            labels["cloud.google.com/gke-gpu-driver-version"] = "default"
    own = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in settings.taints]
    world.cluster.add_node(pool.name, *own, *([GPU_TAINT] if machine.gpus else []), **labels)


def lay_out(world: World, settings: EnvironmentSettings) -> dict[str, Pool]:
    """Nodes, Google's driver installer, and the GPU Operator by berth's values."""
    pools = offered(settings.pools, settings.sharing)
    for pool in pools.values():
        node(world, pool)
    installer = driver_installer()
    world.cluster.add(
        "daemonsets",
        installer["metadata"]["name"],
        labels=installer["metadata"]["labels"],
        namespace=installer["metadata"]["namespace"],
        spec=installer["spec"],
    )
    sent = GpuOperator(settings.operators.gpu, Site(pools)).values()
    config = sent["devicePlugin"]["config"]
    parts = ("driver", "hostPaths", "toolkit", "mig", "cdi", "daemonsets")
    policy: dict[str, Any] = {"daemonsets": {"tolerations": TOLERATED}, "dcgm": {"enabled": False}}
    policy |= {part: sent[part] for part in parts if part in sent}
    policy["devicePlugin"] = {"config": {"name": "configs", "default": config["default"]}}
    policy["migManager"] = {"config": {"default": "all-disabled"}}
    worker = sent.get("node-feature-discovery", {}).get("worker", {})
    world.cluster.install(policy, config["data"], tolerations=worker.get("tolerations"))
    world.settle()
    return dict(pools)


def daemons(world: World, name: str) -> set[str]:
    """Applications of the operator's namespace with a pod on a node."""
    pods = world.cluster.objects["pods"].values()
    mine = [pod for pod in pods if pod["spec"]["nodeName"] == name and pod["metadata"].get("namespace") == NAMESPACE]
    return {pod["metadata"]["labels"]["app"] for pod in mine if "app" in pod["metadata"]["labels"]}


def check(world: World, pools: dict[str, Pool]) -> None:
    """Every pool offers what its settings say, and the operator runs on its own pools only."""
    for name, pool in pools.items():
        expected = {pool.offer.resource: str(pool.offer.per_node)} if pool.offer else {}
        assert world.devices(name) == expected, name
        assert ("nvidia-device-plugin-daemonset" in daemons(world, name)) is pool.settings.by_operator, name
        if not pool.settings.by_operator:
            assert daemons(world, name) - {"nvidia-driver-installer"} == set(), name


@pytest.mark.parametrize("stack", ["Pulumi.lab.yaml", "Pulumi.dev.yaml", "gallery/Pulumi.mixed.yaml"])
def test_every_pool_of_a_shipped_stack_offers_what_its_settings_say(world: World, stack: str) -> None:
    file = stack_file.read(STACKS / stack)
    settings = load("test", file.settings, file).settings
    assert isinstance(settings, EnvironmentSettings)
    check(world, lay_out(world, settings))


@pytest.mark.parametrize(
    "profile",
    [
        {"kind": "time-slicing", "replicas": 4},
        {"kind": "time-slicing", "replicas": 2, "renameByDefault": True},
        {"kind": "mps", "replicas": 2},
        {"kind": "mig", "strategy": "single", "profile": "1g.23gb"},
        {"kind": "mig", "strategy": "mixed", "profile": "3g.90gb"},
    ],
)
def test_a_tainted_pool_offers_what_its_profile_says_beside_one_of_gkes(world: World, profile: dict[str, Any]) -> None:
    pools = {
        "cpu": {"machineType": "n2-standard-16", "nodes": 1},
        "dev": TAINTED,
        "train": {"machineType": "a4-highgpu-8g", "nodes": 1},
        "whole": {"machineType": "a4-highgpu-8g", "nodes": 1, "gpuManagement": "operator"},
    }
    given = {"project": "berth-lab", "zone": "us-central1-b", "sharing": {"any": profile}, "pools": pools}
    settings = load("test", {"environment": given}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    check(world, lay_out(world, settings))
