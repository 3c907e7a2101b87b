"""Parts of a RayCluster's pods for containers inside them."""

from collections.abc import Callable
from typing import Any

import pytest

from berth.components import nested
from berth.components.isolation import harden, pod_security_level, pods_of
from berth.components.ray.manifest import ray_cluster
from berth.stacks.settings.resolved import Resolved
from tests.unit.components.ray.test_manifest import POOLS
from tests.unit.loaded import environment_of

OPERATOR_POOLS = {**POOLS, "a4": {**POOLS["a4"], "gpuManagement": "operator"}}


def resolved(way: str, pools: dict[str, Any] = POOLS, **shape: Any) -> Resolved:
    values = {"project": "berth-lab", "zone": "us-central1-b", "pools": pools}
    engineers = {"x": {"nestedContainers": way, **shape}}
    return environment_of("test", {**values, "engineers": engineers}).resolved


def cluster(way: str, pools: dict[str, Any] = POOLS, **shape: Any) -> dict[str, Any]:
    found = resolved(way, pools, **shape)
    return ray_cluster(found.berths[0], found.pools, "berth-x", {"berth/engineer": "x"})


def pods(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    spec = manifest["spec"]
    return [
        group["template"]["spec"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])
    ]


@pytest.mark.parametrize(
    ("way", "pools"), [("cdi-per-pod", POOLS), ("nvidia-runtime", OPERATOR_POOLS)]
)
def test_manifest(golden: Callable[[str, Any], None], way: str, pools: dict[str, Any]) -> None:
    golden(f"ray/nested-{way}", cluster(way, pools))


def test_none_changes_nothing() -> None:
    template = {"spec": {"containers": [{"name": "ray-head"}]}}
    assert nested.with_nested_parts(template, nested.nested_parts("none", gpus=8)) == template
    assert nested.programs_config_map("none", "berth-x", {}) is None


def test_every_pod_finds_the_programs_under_their_name() -> None:
    config_map = nested.programs_config_map("cdi-per-pod", "berth-x", {"a": "b"})
    assert config_map is not None
    for pod in pods(cluster("cdi-per-pod")):
        (volume,) = (entry for entry in pod["volumes"] if "configMap" in entry)
        assert volume["configMap"]["name"] == config_map["metadata"]["name"]
        assert {item["key"] for item in volume["configMap"]["items"]} == config_map["data"].keys()


def test_what_else_is_in_a_pod_stays() -> None:
    template = {
        "spec": {
            "volumes": [{"name": "mine"}],
            "containers": [
                {
                    "name": "ray-worker",
                    "command": ["source /mine"],
                    "env": [{"name": "CONTAINERS_CONF", "value": "/mine"}],
                    "volumeMounts": [{"name": "mine"}],
                    "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                },
                {"name": "beside"},
            ],
        }
    }
    spec = nested.with_nested_parts(template, nested.nested_parts("cdi-per-pod", gpus=1))["spec"]
    ray, beside = spec["containers"]
    assert (spec["volumes"][0], ray["volumeMounts"][0], beside) == (
        {"name": "mine"},
        {"name": "mine"},
        {"name": "beside"},
    )
    assert ray["command"] == ["source /mine", "&&", ". /opt/berth/nested/etc/environment.sh"]
    assert [item["value"] for item in ray["env"] if item["name"] == "CONTAINERS_CONF"] == ["/mine"]
    assert ray["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"], "drop": ["ALL"]}


def test_no_pod_is_privileged_or_can_become_it() -> None:
    for pod in pods(harden(cluster("cdi-per-pod"), "privileged", None)):
        context = pod["containers"][0]["securityContext"]
        assert not context.get("privileged")
        assert (context["allowPrivilegeEscalation"], context["capabilities"]) == (
            False,
            {"drop": ["ALL"]},
        )
        assert not any("hostPath" in volume for volume in pod["volumes"])


def test_only_podmans_way_lowers_the_pod_security_level() -> None:
    levels = {
        way: pod_security_level(pods_of([cluster(way, pools)]))
        for way, pools in (
            ("none", POOLS),
            ("cdi-per-pod", POOLS),
            ("nvidia-runtime", OPERATOR_POOLS),
        )
    }
    assert levels == {
        "none": "restricted",
        "cdi-per-pod": "privileged",
        "nvidia-runtime": "restricted",
    }


def test_only_workers_with_gpus_run_by_nvidias_runtime() -> None:
    head, worker = pods(cluster("nvidia-runtime", OPERATOR_POOLS))
    assert "runtimeClassName" not in head
    assert worker["runtimeClassName"] == "nvidia"
    without = cluster("nvidia-runtime", worker={"pool": "cpu", "gpus": 0})
    assert not any("runtimeClassName" in pod for pod in pods(without))
