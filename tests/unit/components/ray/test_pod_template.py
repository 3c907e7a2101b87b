"""Patches of pod templates: merge, refusals, and what is derived from the result."""

from collections.abc import Callable
from typing import Any

import pytest

from berth.components.isolation import pod_security_level, pods_of
from berth.components.ray.pod_template.merging import merged_patches
from berth.components.ray.settings import WorkerShape
from berth.stacks.load.stack import Environment, SettingsError
from tests.lab.bad_pods import BAD_PODS
from tests.lab.bad_pods import over as over_by_position
from tests.unit.components.ray.test_manifest import POOLS, manifest
from tests.unit.loaded import environment_of

LOGS = {
    "name": "logs",
    "image": "example.invalid/logs",
    "resources": {"requests": {"cpu": 3, "memory": "2Gi"}},
}
PROXY = {"name": "proxy", "image": "example.invalid/proxy", "restartPolicy": "Always"}
EVERYTHING = {
    "metadata": {"labels": {"team": "ml"}, "annotations": {"example.com/scrape": "true"}},
    "spec": {
        "runtimeClassName": "gvisor",
        "terminationGracePeriodSeconds": 120,
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "nodeSelector": {"disk": "fast"},
        "topologySpreadConstraints": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "maxSkew": 1,
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ],
        "initContainers": [PROXY],
        "containers": [
            LOGS | {"volumeMounts": [{"name": "logs", "mountPath": "/logs", "readOnly": True}]},
            {
                "name": "ray-worker",
                "env": [
                    {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
                ],
                "volumeMounts": [{"name": "logs", "mountPath": "/ray-logs"}],
                "lifecycle": {"preStop": {"exec": {"command": ["sync"]}}},
            },
        ],
        "volumes": [{"name": "logs", "emptyDir": {"sizeLimit": "10Gi"}}],
    },
}


def environment(kind: str, shape: dict[str, Any], **more: Any) -> Environment:
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": POOLS,
        kind: {"x": shape},
        **more,
    }
    return environment_of("test", values)


def problems(template: dict[str, Any], **more: Any) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        environment("engineers", {"worker": {"podTemplate": template}}, **more)
    return caught.value.lines


def worker_of(loaded: Environment) -> dict[str, Any]:
    spec = loaded.berths[0].manifests.main["spec"]
    template = spec["workerGroupSpecs"][0]["template"]
    assert isinstance(template, dict)
    return template


def quota_of(loaded: Environment) -> dict[str, str]:
    (quota,) = (
        found for found in loaded.berths[0].manifests.objects if found["kind"] == "ResourceQuota"
    )
    return dict(quota["spec"]["hard"])


def of_containers(*containers: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


def test_a_patch_of_every_kind(golden: Callable[[str, Any], None]) -> None:
    head = {
        "metadata": {"annotations": {"example.com/scrape": "true"}},
        "spec": {"containers": [LOGS]},
    }
    shape = {"worker": {"podTemplate": EVERYTHING}, "head": {"podTemplate": head}}
    golden("ray/berth-with-pod-templates", manifest("engineers", shape))


def test_an_empty_patch_changes_nothing() -> None:
    assert manifest("engineers", {"worker": {"podTemplate": {}}}) == manifest("engineers", {})


def test_the_quota_counts_sidecars() -> None:
    before = quota_of(environment("engineers", {}))
    after = quota_of(environment("engineers", {"worker": {"podTemplate": EVERYTHING}}))
    # `logs` has 3 cores and 2 GiB of its own, `proxy` the 100m and 256Mi of the LimitRange.
    assert (before["requests.cpu"], after["requests.cpu"]) == ("8", "11100m")
    assert int(after["requests.memory"][:-2]) - int(before["requests.memory"][:-2]) == 2048 + 256
    # A request of more than the LimitRange's limit is its limit too, which Kubernetes insists on.
    assert int(after["limits.memory"][:-2]) - int(before["limits.memory"][:-2]) == 2048 + 1024
    limits = worker_of(environment("engineers", {"worker": {"podTemplate": of_containers(LOGS)}}))[
        "spec"
    ]
    assert limits["containers"][1]["resources"]["limits"] == {"cpu": "3", "memory": "2Gi"}


def test_an_init_container_runs_beside_sidecars_that_start_before_it() -> None:
    big = {"name": "load", "image": "i", "resources": {"limits": {"cpu": "6", "memory": "1Gi"}}}
    beside = PROXY | {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    for containers, cores in (([beside, big], 7), ([big, beside], 6)):
        hard = quota_of(
            environment(
                "engineers", {"worker": {"podTemplate": {"spec": {"initContainers": containers}}}}
            )
        )
        # The head has 2 cores, and the reserve 2.
        assert hard["requests.cpu"] == str(cores + 4)


def test_a_sidecar_sees_no_gpus() -> None:
    spec = worker_of(environment("engineers", {"worker": {"podTemplate": EVERYTHING}}))["spec"]
    for container in (*spec["initContainers"], spec["containers"][1]):
        assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
    assert "NVIDIA_VISIBLE_DEVICES" not in {entry["name"] for entry in spec["containers"][0]["env"]}


def test_patches_of_defaults_merge_with_a_berths_own() -> None:
    defaults: dict[str, Any] = {
        "metadata": {"annotations": {"a": "1", "b": "2"}},
        "spec": {"containers": [LOGS, PROXY], "tolerations": [{"key": "x"}], "hostname": "h"},
    }
    own: dict[str, Any] = {
        "metadata": {"annotations": {"b": "3", "c": "4"}},
        "spec": {
            "containers": [
                {"name": "logs", "image": "other"},
                {"name": "proxy", "$patch": "delete"},
            ]
        },
    }
    template = worker_of(
        environment(
            "engineers",
            {"worker": {"podTemplate": own | {"spec": own["spec"] | {"hostname": None}}}},
            defaults={"worker": {"podTemplate": defaults}},
        )
    )
    assert template["metadata"]["annotations"] == {"a": "1", "b": "3", "c": "4"}
    assert [container["image"] for container in template["spec"]["containers"][1:]] == ["other"]
    assert template["spec"]["containers"][1]["resources"]["requests"] == {
        "cpu": "3",
        "memory": "2Gi",
    }
    assert {"key": "x"} in template["spec"]["tolerations"]
    assert "hostname" not in template["spec"]


@pytest.mark.parametrize("kind", ["engineers", "clusters"])
def test_two_patches_over_a_template_are_one_patch(kind: str) -> None:
    below = EVERYTHING
    above = {"spec": {"initContainers": [{"name": "proxy", "$patch": "delete"}], "volumes": []}}
    both = environment(
        kind,
        {
            "worker": {
                "podTemplate": merged_patches(WorkerShape(pod_template=below).pod_template, above)
            }
        },
    )
    merged = environment(
        kind, {"worker": {"podTemplate": above}}, defaults={"worker": {"podTemplate": below}}
    )
    assert worker_of(both) == worker_of(merged)
    assert not worker_of(both)["spec"].get("initContainers")


@pytest.mark.parametrize("what", BAD_PODS)
def test_what_the_api_server_refuses_is_refused_in_settings_or_lowers_the_level(what: str) -> None:
    sidecar = {
        "name": "c",
        "image": "example.invalid/image",
        "securityContext": {"capabilities": {"drop": ["ALL"]}},
    }
    spec = over_by_position({"containers": [sidecar]}, BAD_PODS[what])
    try:
        loaded = environment("engineers", {"worker": {"podTemplate": {"spec": spec}}})
    except SettingsError:
        return
    manifests = loaded.berths[0].manifests
    level = manifests.namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert level == pod_security_level(pods_of([manifests.main])) != "privileged"


@pytest.mark.parametrize(
    "what",
    [
        "privileged",
        "folder of the node",
        "network of the node",
        "port of the node",
        "administrator's capability",
    ],
)
def test_the_worst_is_refused(what: str) -> None:
    sidecar = {"name": "c", "image": "example.invalid/image"}
    assert len(problems({"spec": over_by_position({"containers": [sidecar]}, BAD_PODS[what])})) == 1


def test_groups_have_patches_of_their_own_over_the_workers() -> None:
    groups = {"big": {"podTemplate": {"spec": {"runtimeClassName": "gvisor"}}}, "small": {}}
    worker = {"podTemplate": {"metadata": {"annotations": {"team": "ml"}}}}
    loaded = environment("engineers", {"worker": worker, "workerGroups": groups})
    spec = loaded.berths[0].manifests.main["spec"]
    big, small = (group["template"] for group in spec["workerGroupSpecs"])
    assert (big["spec"]["runtimeClassName"], "runtimeClassName" in small["spec"]) == (
        "gvisor",
        False,
    )
    assert [found["metadata"]["annotations"]["team"] for found in (big, small)] == ["ml", "ml"]
