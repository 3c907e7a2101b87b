import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from berth.components.cluster.demand import gpus_of_pod
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.ray.layers import settings_over_defaults
from berth.components.ray.manifest import dashboard_service, ray_cluster
from berth.components.ray.settings import BerthShape
from berth.components.ray.variables import entries_of, references_of
from berth.components.sharing import Pools
from tests.unit.cases import holds, table
from tests.unit.components import fabric
from tests.unit.loaded import environment_of

POOLS = {
    "cpu": {"machineType": "n2-standard-16", "nodes": 1},
    "a4": {"machineType": "a4-highgpu-8g", "nodes": 2, "taints": [{"key": "team", "value": "ml"}]},
}


TABLE = table(__file__, "manifests.yaml")
WAIVED = {"ray-auth": "a test", "private-dashboard": "a test"}


def complete(kind: str, shape: dict[str, Any]) -> tuple[RayClusterSettings, Pools]:
    values = {"project": "berth-lab", "zone": "us-central1-b", "pools": POOLS, kind: {"x": shape}}
    resolved = environment_of("test", values | {"policies": {"waived": WAIVED}}).resolved
    (cluster,) = [*resolved.berths, *resolved.clusters]
    return cluster, resolved.pools


def manifest(kind: str, shape: dict[str, Any]) -> dict[str, Any]:
    return ray_cluster(*complete(kind, shape), "berth-x", {"berth/engineer": "x"})


@pytest.mark.parametrize("name", TABLE["berths"])
def test_manifest(golden: Callable[[str, Any], None], name: str) -> None:
    golden(f"ray/{name}", manifest(*TABLE["berths"][name]))


@pytest.mark.parametrize("dashboard", ["internal", "public"])
def test_a_head_that_is_reached_from_outside_has_a_load_balancer(
    golden: Callable[[str, Any], None], dashboard: str
) -> None:
    cluster, _ = complete("engineers", {"dashboard": dashboard})
    golden(
        f"ray/dashboard-{dashboard}", dashboard_service(cluster, "berth-x", {"berth/engineer": "x"})
    )


@pytest.mark.parametrize("dashboard", ["private", "internal", "public"])
def test_kuberays_own_service_stays_in_the_cluster(dashboard: str) -> None:
    spec = manifest("engineers", {"dashboard": dashboard})["spec"]
    assert not {"serviceType", "headService", "enableIngress"} & spec["headGroupSpec"].keys()


def test_a_private_head_has_no_load_balancer() -> None:
    assert dashboard_service(complete("engineers", {})[0], "berth-x", {}) is None


def test_limits_equal_requests_in_every_container() -> None:
    spec = manifest("clusters", {})["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        for container in group["template"]["spec"]["containers"]:
            assert container["resources"]["limits"] == container["resources"]["requests"]


def test_only_pods_that_ask_for_gpus_see_any() -> None:
    spec = manifest("engineers", {})["spec"]
    head = spec["headGroupSpec"]
    worker = spec["workerGroupSpecs"][0]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in head["template"]["spec"][
        "containers"
    ][0]["env"]
    assert worker["template"]["spec"]["containers"][0]["env"] == []
    assert "nvidia.com/gpu" not in head["template"]["spec"]["containers"][0]["resources"]["limits"]


def on_fabric(pool: str, kind: str, shape: dict[str, Any]) -> dict[str, Any]:
    return ray_cluster(
        *fabric.complete(getattr(fabric, pool), kind, shape), "berth-x", {"berth/engineer": "x"}
    )


def worker_group(pool: str, kind: str, shape: dict[str, Any]) -> dict[str, Any]:
    (group,) = on_fabric(pool, kind, shape)["spec"]["workerGroupSpecs"]
    assert isinstance(group, dict)
    return group


@pytest.mark.parametrize("name", TABLE["on_a_fabric"])
def test_manifest_on_a_fabric(golden: Callable[[str, Any], None], name: str) -> None:
    golden(f"ray/{name}", on_fabric(*TABLE["on_a_fabric"][name]))


@pytest.mark.parametrize("name", TABLE["groups"])
def test_a_group_of_workers(name: str) -> None:
    given, part = TABLE["groups"][name]
    group = worker_group(*given)
    assert holds(group, part), group


def test_claimed_gpus_of_a_pod_are_counted() -> None:
    assert (
        gpus_of_pod(worker_group("PAIRED", "engineers", {"worker": {"gpus": 4}})["template"]) == 4
    )


@pytest.mark.parametrize("pool", ["BY_NETWORKS", "MANAGED", "PAIRED", "CLAIMED"])
def test_a_claim_is_the_pods_and_its_containers(pool: str) -> None:
    spec = worker_group(pool, "clusters", {})["template"]["spec"]
    (claim,) = spec["resourceClaims"]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": claim["name"]}]


def test_a_head_claims_nothing_and_knows_nothing_of_nccl() -> None:
    head = on_fabric("PAIRED", "clusters", {"head": {"pool": "train"}})["spec"]["headGroupSpec"]
    (container,) = head["template"]["spec"]["containers"]
    assert not {"resourceClaims", "volumes"} & head["template"]["spec"].keys()
    assert not {"volumeMounts"} & container.keys()
    assert "claims" not in container["resources"]
    assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def test_env_is_laid_over_nccls() -> None:
    shape = {
        "nccl": {"env": {"NCCL_DEBUG": "WARN", "NCCL_ALGO": "Ring"}},
        "env": {"NCCL_ALGO": "Tree", "LOG": "1"},
    }
    (container,) = worker_group("BY_NETWORKS", "clusters", shape)["template"]["spec"]["containers"]
    values = {variable["name"]: variable["value"] for variable in container["env"]}
    assert len(values) == len(container["env"])
    assert (values["NCCL_DEBUG"], values["NCCL_ALGO"], values["LOG"]) == ("WARN", "Tree", "1")


def test_what_berths_have_by_default_of_cores_and_nics_is_not_a_clusters() -> None:
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": {"cpu": fabric.CPU, "train": fabric.BY_NETWORKS},
        "defaults": {"worker": {"cpu": 4, "cpuLimit": 8, "nics": 1}},
        "clusters": {"x": {}},
    }
    (cluster,) = environment_of("test", values).resolved.clusters
    (group,) = cluster.groups
    assert (group.cpu, group.cpu_limit, group.nics) == ("201", "201", 8)


def test_custom_resources_are_one_word_for_the_shell_and_json_for_ray() -> None:
    group = worker_group(
        "A4", "engineers", {"worker": {"rayResources": {"spot": 1, "local-disk": 4}}}
    )
    given = group["rayStartParams"]["resources"]
    assert [json.loads(word) for word in shlex.split(given)] == [{"spot": 1, "local-disk": 4}]
    # Ray's autoscaler reads what stands between the first character and the last.
    assert json.loads(given[1:-1]) == {"spot": 1, "local-disk": 4}


def test_what_ray_counts_on_berths_workers_is_not_counted_on_a_clusters() -> None:
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": POOLS,
        "defaults": {"worker": {"rayGpus": 4, "rayResources": {"spot": 1}}},
        "engineers": {"x": {}},
        "clusters": {"y": {}},
    }
    resolved = environment_of("test", values).resolved
    counted = {
        berth.name: (group.ray_gpus, group.ray_resources)
        for berth in (*resolved.berths, *resolved.clusters)
        for group in berth.groups
    }
    assert counted == {"x": (4, {"spot": 1}), "y": (None, {})}


def test_an_entry_of_a_default_is_replaced_as_a_whole() -> None:
    defaults = {
        "env": {"A": {"secret": "a", "key": "a"}, "B": "b"},
        "secrets": {"C": {"secret": "team", "key": "c"}},
    }
    own = {"env": {"A": {"configMap": "b", "key": "b"}}, "secrets": {"C": {}}}
    merged = BerthShape.model_validate(settings_over_defaults(defaults, own))
    assert entries_of(merged.env | references_of(merged.secrets)) == [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "b"}}},
        {"name": "B", "value": "b"},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "c", "key": "value"}}},
    ]
