"""Operators of the fabric, compared with the real charts where their data is at hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.fabric import dranet_class
from berth.components.gke.node_pool_arguments import NodePlace, node_pool_arguments
from berth.components.operators import DraNet, Gib, GpuDra, GpuDraSettings, Site
from berth.components.operators.gib import installer_manifest
from berth.components.sharing import Pools, node_labels, offered_pools
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_environment
from tests.unit import loaded
from tests.unit.components.gke import environment_of
from tests.unit.components.operators.test_gpu_operator import unknown_values

UPSTREAM = Path(__file__).resolve().parents[5] / "shared" / "upstream"

A4: dict[str, Any] = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot"}
A4X: dict[str, Any] = {
    "machineType": "a4x-highgpu-4g",
    "nodes": 2,
    "capacity": {"kind": "reservation", "reservation": "nvl"},
    "rdma": "managed",
}
POOLS: dict[str, Any] = {
    "train": A4 | {"rdma": "networks", "gpuAllocation": "dra"},
    "small": A4 | {"rdma": "networks", "gpuAllocation": "dra"},
    "solo": A4 | {"gpuAllocation": "dra"},
    "dev": A4,
}


def fleet(pools: dict[str, Any] = POOLS, **values: Any) -> tuple[EnvironmentSettings, Pools]:
    settings = environment_of(pools, **values)
    return settings, offered_pools(settings.pools, settings.sharing)


def of_dranet(**given: Any) -> dict[str, Any]:
    settings, pools = fleet(operators={"dranet": given})
    return DraNet(settings.operators.dranet, Site(pools)).values()


VALUES: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "dranet": ("dranet", of_dranet),
    "dranet-on-chosen-nodes": (
        "dranet",
        lambda: of_dranet(nodeSelector={"tier": "fast"}, version="1.4.1"),
    ),
    "nvlink": (
        "dra-driver-nvidia-gpu",
        lambda: GpuDra(GpuDraSettings(), Site(fleet({"big": A4X})[1])).values(),
    ),
    "gpu-dra": (
        "dra-driver-nvidia-gpu",
        lambda: GpuDra(GpuDraSettings(), Site(fleet()[1])).values(),
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_values(golden: Callable[[str, Any], None], case: str) -> None:
    golden(f"fabric/{case}", VALUES[case][1]())


@pytest.mark.parametrize("case", VALUES)
def test_every_value_exists_in_the_real_chart(case: str) -> None:
    chart, values = VALUES[case]
    if not (UPSTREAM / chart).is_dir():
        pytest.skip(f"the real chart's data (../shared/upstream/{chart}) is not at hand")
    assert unknown_values(values(), UPSTREAM / chart / "values.yaml") == []


def test_manifests(golden: Callable[[str, Any], None]) -> None:
    settings, pools = fleet()
    golden("fabric/gib-installer", installer_manifest(settings.operators.gib, Gib.served(pools)))
    golden(
        "fabric/gib-installer-arm64",
        installer_manifest(settings.operators.gib, ["big"], arm64=True),
    )
    golden("fabric/device-class", dranet_class("v1"))
    assert dranet_class("v1beta1") == dranet_class("v1") | {"apiVersion": "resource.k8s.io/v1beta1"}


def test_each_is_for_its_own_pools_only() -> None:
    _, pools = fleet()
    assert set(DraNet.served(pools)) == {"train", "small"}
    assert set(GpuDra.served(pools)) == {"train", "small", "solo"}
    assert set(Gib.served(pools)) == {"small", "train"}
    counted = fleet({"train": A4 | {"rdma": "networks"}, "dev": A4})[1]
    assert (set(DraNet.served(counted)), set(GpuDra.served(counted))) == ({"train"}, set())
    managed = fleet({"train": A4 | {"rdma": "managed"}})[1]
    assert DraNet.served(managed) == {}, "GKE brings the driver"
    assert set(Gib.served(managed)) == {"train"}


def test_a_pool_of_claimed_gpus_has_no_device_plugin_and_no_driver_of_gkes(
    golden: Callable[[str, Any], None],
) -> None:
    settings, pools = fleet()
    place = NodePlace(
        project="some-project",
        cluster="some",
        location="us-central1-b",
        zones=["us-central1-b"],
        node_labels=node_labels(pools["solo"]),
    )
    arguments = node_pool_arguments(pools["solo"].settings, place)
    golden("gke/pool-a4-of-claimed-gpus", arguments)
    assert node_labels(pools["dev"]) == {"nvidia.com/gpu.deploy.operands": "false"}
    assert settings.pools["solo"].by_dra


def test_a_preinstalled_driver_is_told_of_claimed_gpus_too() -> None:
    _, pools = fleet({"solo": A4 | {"gpuAllocation": "dra", "driver": "preinstalled"}})
    assert node_labels(pools["solo"])["berth/driver"] == "preinstalled"


def test_mig_instances_that_others_have_cut_can_be_claimed() -> None:
    cut = {"kind": "mig", "strategy": "mixed", "profile": "1g.23gb"}
    pool = {"machineType": "a4-highgpu-8g", "nodes": 1, "gpuAllocation": "dra", "sharing": "cut"}
    cpu = {"machineType": "n2-standard-16", "nodes": 1}
    on = {"cluster": {"existing": {"kubeconfig": "kubeconfig.yaml"}}, "sharing": {"cut": cut}}
    settings = loaded.environment_of("some", {"pools": {"cpu": cpu, "dev": pool}, **on}).settings
    pools = offered_pools(settings.pools, settings.sharing)
    assert set(GpuDra.served(pools)) == {"dev"}
    assert not pools["dev"].settings.by_operator
    (warning,) = resolve_environment(settings).warnings
    assert "a device plugin hands out the same GPUs as claims do" in warning.message


def daemon_set(**pod: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "dranet"},
        "spec": {"template": {"spec": pod}},
    }


def test_daemons_of_a_manifest_run_where_the_pools_and_the_settings_say(tmp_path: Path) -> None:
    manifest = tmp_path / "dranet.yaml"
    manifest.write_text(yaml.safe_dump(daemon_set()))
    dranet = {"source": "manifest", "manifest": str(manifest), "nodeSelector": {"a": "b"}}
    settings, pools = fleet(operators={"dranet": dranet})
    written = daemon_set(
        nodeSelector={"kubernetes.io/os": "linux"}, affinity={"podAffinity": {}}, hostNetwork=True
    )
    inputs = DraNet(settings.operators.dranet, Site(pools))
    placed = inputs.placed(written)
    assert placed["spec"]["template"]["spec"] == {
        "hostNetwork": True,
        "nodeSelector": {"kubernetes.io/os": "linux", "a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAffinity": {}, **of_dranet()["affinity"]},
    }
    assert written == daemon_set(
        nodeSelector={"kubernetes.io/os": "linux"}, affinity={"podAffinity": {}}, hostNetwork=True
    ), "what was read stays as it is"
    other = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "dranet"}}
    assert inputs.placed(other) is other
