from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from berth.components.cluster.gpus import gpus_of_pod
from berth.components.ray.layers import over_defaults
from berth.components.ray.manifest import dashboard_service, ray_cluster
from berth.components.ray.settings import BerthShape, RayClusterSettings
from berth.components.ray.variables import entries_of, references_of
from berth.components.sharing import Pools
from berth.stacks.load.stack import load
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_environment
from tests.unit.components import fabric

POOLS = {
    "cpu": {"machineType": "n2-standard-16", "nodes": 1},
    "a4": {"machineType": "a4-highgpu-8g", "nodes": 2, "taints": [{"key": "team", "value": "ml"}]},
}


VARIABLES = {
    "env": {"LEVEL": {"configMap": "team", "key": "level"}, "NODE": {"field": "spec.nodeName"}, "LOG": "1"},
    "secrets": {"HF_TOKEN": {}, "WANDB_API_KEY": {"secret": "wandb", "key": "key"}},
    "imagePullSecrets": ["registry"],
    "worker": {"env": {"LOG": "2", "HF_TOKEN": {"secret": "of-workers", "key": "token"}}},
    "head": {"env": {"LOG": "3"}},
}

VOLUMES = {
    "data": {"bucket": "my-bucket", "at": "/data", "readOnly": True},
    "team": {"claim": "team-data", "at": "/team"},
    "fast": {"scratch": "500Gi", "at": "/scratch"},
}

GROUPS = {
    "cpu": {"pool": "cpu", "gpus": 0, "cpu": 2, "memory": "8Gi", "workers": {"min": 0, "max": 4, "idleTimeout": "10m"}},
    "gpu": {"workers": {"min": 0, "max": 2, "start": 1}, "rayResources": {"spot": 1}},
    "whole": {"workers": 0, "gpus": 8, "env": {"LOG": "2"}, "labels": {"tier": "large"}},
}

SHARED = {
    "team": {"filestore": "2Ti", "at": "/team"},
    "models": {"filestore": "1Ti", "storageClass": "zonal-rwx", "at": "/models", "readOnly": True},
}

WAIVED = {"ray-auth": "a test", "private-dashboard": "a test"}


def complete(kind: str, shape: dict[str, Any]) -> tuple[RayClusterSettings, Pools]:
    values = {"project": "berth-lab", "zone": "us-central1-b", "pools": POOLS, kind: {"x": shape}}
    settings = load("test", {"environment": values | {"policies": {"waived": WAIVED}}}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    resolved = resolve_environment(settings)
    (cluster,) = [*resolved.berths, *resolved.clusters]
    return cluster, resolved.pools


def manifest(kind: str, shape: dict[str, Any]) -> dict[str, Any]:
    return ray_cluster(*complete(kind, shape), "berth-x", {"berth/engineer": "x"})


@pytest.mark.parametrize(
    ("name", "kind", "shape"),
    [
        ("berth-of-all-defaults", "engineers", {}),
        ("berth-without-gpus", "engineers", {"worker": {"gpus": 0, "pool": "cpu"}, "env": {"LOG": "1"}}),
        ("berth-that-autoscales", "engineers", {"workers": {"min": 0, "max": 3}, "worker": {"gpus": 2}}),
        (
            "berth-that-autoscales-and-counts-its-own",
            "engineers",
            {
                "workers": {"min": 0, "max": 3, "idleTimeout": "10m"},
                "worker": {"rayGpus": 2, "rayResources": {"spot": 1, "local-disk": 4}},
            },
        ),
        ("berth-with-three-groups", "engineers", {"worker": {"memory": "32Gi"}, "workerGroups": GROUPS}),
        ("cluster-of-whole-nodes", "clusters", {"workers": 2}),
        ("berth-without-authentication", "engineers", {"auth": "none"}),
        ("berth-with-variables-of-every-kind", "engineers", VARIABLES),
        ("berth-with-a-home", "engineers", {"home": "50Gi"}),
        ("berth-with-volumes-of-every-kind", "engineers", {"home": "50Gi", "volumes": VOLUMES}),
        ("berth-with-shares", "engineers", {"volumes": SHARED, "secrets": {"HF_TOKEN": {"secretManager": "hf"}}}),
    ],
)
def test_manifest(golden: Callable[[str, Any], None], name: str, kind: str, shape: dict[str, Any]) -> None:
    golden(f"ray/{name}", manifest(kind, shape))


@pytest.mark.parametrize("dashboard", ["internal", "public"])
def test_a_head_that_is_reached_from_outside_has_a_load_balancer(
    golden: Callable[[str, Any], None], dashboard: str
) -> None:
    cluster, _ = complete("engineers", {"dashboard": dashboard})
    golden(f"ray/dashboard-{dashboard}", dashboard_service(cluster, "berth-x", {"berth/engineer": "x"}))


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
    head, worker = spec["headGroupSpec"], spec["workerGroupSpecs"][0]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in head["template"]["spec"]["containers"][0]["env"]
    assert worker["template"]["spec"]["containers"][0]["env"] == []
    assert "nvidia.com/gpu" not in head["template"]["spec"]["containers"][0]["resources"]["limits"]


def on_fabric(pool: dict[str, Any], kind: str, shape: dict[str, Any]) -> dict[str, Any]:
    return ray_cluster(*fabric.complete(pool, kind, shape), "berth-x", {"berth/engineer": "x"})


def worker_group(pool: dict[str, Any], kind: str, **shape: Any) -> dict[str, Any]:
    (group,) = on_fabric(pool, kind, shape)["spec"]["workerGroupSpecs"]
    assert isinstance(group, dict)
    return group


@pytest.mark.parametrize(
    ("name", "pool", "kind", "shape"),
    [
        ("cluster-with-all-nics", fabric.BY_NETWORKS, "clusters", {"workers": 2}),
        ("cluster-with-all-nics-by-managed-dranet", fabric.MANAGED, "clusters", {"workers": 2}),
        ("cluster-of-claimed-nodes", fabric.PAIRED, "clusters", {"workers": 2}),
        ("berth-with-claimed-pairs", fabric.PAIRED, "engineers", {"worker": {"gpus": 2}}),
        ("berth-with-claimed-gpus", fabric.CLAIMED, "engineers", {"worker": {"gpus": 2}}),
        ("berth-beside-gib-without-nics", fabric.PAIRED, "engineers", {"worker": {"gpus": 1, "nics": 0}}),
    ],
)
def test_manifest_on_a_fabric(
    golden: Callable[[str, Any], None], name: str, pool: dict[str, Any], kind: str, shape: dict[str, Any]
) -> None:
    golden(f"ray/{name}", on_fabric(pool, kind, shape))


@pytest.mark.parametrize("pool", [fabric.BY_NETWORKS, fabric.MANAGED, fabric.PAIRED, fabric.CLAIMED])
def test_a_claim_is_the_pods_and_its_containers(pool: dict[str, Any]) -> None:
    spec = worker_group(pool, "clusters")["template"]["spec"]
    (claim,) = spec["resourceClaims"]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": claim["name"]}]


def test_a_head_claims_nothing_and_knows_nothing_of_nccl() -> None:
    head = on_fabric(fabric.PAIRED, "clusters", {"head": {"pool": "train"}})["spec"]["headGroupSpec"]
    (container,) = head["template"]["spec"]["containers"]
    assert not {"resourceClaims", "volumes"} & head["template"]["spec"].keys()
    assert not {"volumeMounts"} & container.keys()
    assert "claims" not in container["resources"]
    assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def test_claimed_gpus_are_no_counted_resource_and_ray_is_told_of_them() -> None:
    group = worker_group(fabric.PAIRED, "engineers", worker={"gpus": 4})
    (container,) = group["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "16Gi"}
    assert group["rayStartParams"] == {"num-gpus": "4"}
    assert "NVIDIA_VISIBLE_DEVICES" not in {variable["name"] for variable in container["env"]}
    assert gpus_of_pod(group["template"]) == 4


def test_env_is_laid_over_nccls() -> None:
    shape = {"nccl": {"env": {"NCCL_DEBUG": "WARN", "NCCL_ALGO": "Ring"}}, "env": {"NCCL_ALGO": "Tree", "LOG": "1"}}
    (container,) = worker_group(fabric.BY_NETWORKS, "clusters", **shape)["template"]["spec"]["containers"]
    values = {variable["name"]: variable["value"] for variable in container["env"]}
    assert len(values) == len(container["env"])
    assert (values["NCCL_DEBUG"], values["NCCL_ALGO"], values["LOG"]) == ("WARN", "Tree", "1")


def test_a_worker_may_use_more_cores_than_it_is_sure_of() -> None:
    group = worker_group(fabric.A4, "engineers", worker={"cpu": 4, "cpuLimit": 8})
    resources = group["template"]["spec"]["containers"][0]["resources"]
    assert (resources["requests"]["cpu"], resources["limits"]["cpu"]) == ("4", "8")


def test_what_berths_have_by_default_of_cores_and_nics_is_not_a_clusters() -> None:
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": {"cpu": fabric.CPU, "train": fabric.BY_NETWORKS},
        "defaults": {"worker": {"cpu": 4, "cpuLimit": 8, "nics": 1}},
        "clusters": {"x": {}},
    }
    settings = load("test", {"environment": values}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    (cluster,) = resolve_environment(settings).clusters
    (group,) = cluster.groups
    assert (group.cpu, group.cpu_limit, group.nics) == ("201", "201", 8)


def test_an_autoscaled_group_begins_with_its_start() -> None:
    group = worker_group(fabric.BY_NETWORKS, "clusters", workers={"min": 0, "max": 2, "start": 1})
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (1, 0, 2)


def test_custom_resources_are_one_word_for_the_shell_and_json_for_ray() -> None:
    group = worker_group(fabric.A4, "engineers", worker={"rayResources": {"spot": 1, "local-disk": 4}})
    given = group["rayStartParams"]["resources"]
    assert [json.loads(word) for word in shlex.split(given)] == [{"spot": 1, "local-disk": 4}]
    # Ray's autoscaler reads what stands between the first character and the last.
    assert json.loads(given[1:-1]) == {"spot": 1, "local-disk": 4}


@pytest.mark.parametrize(("gpus", "ray_gpus"), [(0, 2), (2, 0), (2, 1)])
def test_what_ray_counts_is_not_what_a_worker_gets(gpus: int, ray_gpus: int) -> None:
    group = worker_group(fabric.A4, "engineers", worker={"gpus": gpus, "rayGpus": ray_gpus})
    (container,) = group["template"]["spec"]["containers"]
    assert group["rayStartParams"] == {"num-gpus": str(ray_gpus)}
    assert int(container["resources"]["limits"].get("nvidia.com/gpu", 0)) == gpus
    void = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
    assert void == (gpus == 0)


def test_what_ray_counts_on_berths_workers_is_not_counted_on_a_clusters() -> None:
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": POOLS,
        "defaults": {"worker": {"rayGpus": 4, "rayResources": {"spot": 1}}},
        "engineers": {"x": {}},
        "clusters": {"y": {}},
    }
    settings = load("test", {"environment": values}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    resolved = resolve_environment(settings)
    counted = {
        berth.name: (group.ray_gpus, group.ray_resources)
        for berth in (*resolved.berths, *resolved.clusters)
        for group in berth.groups
    }
    assert counted == {"x": (4, {"spot": 1}), "y": (None, {})}


def test_an_entry_of_a_default_is_replaced_as_a_whole() -> None:
    defaults = {"env": {"A": {"secret": "a", "key": "a"}, "B": "b"}, "secrets": {"C": {"secret": "team", "key": "c"}}}
    own = {"env": {"A": {"configMap": "b", "key": "b"}}, "secrets": {"C": {}}}
    merged = BerthShape.model_validate(over_defaults(defaults, own))
    assert entries_of(merged.env | references_of(merged.secrets)) == [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "b"}}},
        {"name": "B", "value": "b"},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "c", "key": "value"}}},
    ]
