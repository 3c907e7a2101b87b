"""Registrations of a berth whose workers claim devices."""

from typing import Any, get_args

import pulumi
import pytest

from berth.components.berth import Berth, BerthInputs, berth_manifests
from berth.components.hardware.names import DEVICE_CLASSES, ResourceApi
from berth.components.ray import cluster_workload
from tests.unit.components.fabric import (
    A4,
    BY_NETWORKS,
    CLAIMED,
    NVLINKED,
    PAIRED,
    PAIRED_MANAGED,
    complete,
)
from tests.unit.recording import Recorder, options_of, run

BOTH = {"image": "example.com/of-both-architectures:1"}
RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
INSIDE = {"LimitRange", "NetworkPolicy", "ResourceQuota"}


def registered(pool: dict[str, Any], shape: dict[str, Any], api: ResourceApi = "v1") -> Recorder:
    cluster, pools = complete(pool, "clusters", shape)

    async def program() -> None:
        Berth("x", BerthInputs(cluster_workload(cluster, "cluster"), pools, "lab", "lab", api))

    return run(program, "lab")


def template_of(recorder: Recorder) -> str:
    (cluster,) = recorder.of_type(RAY_CLUSTER)
    (claim,) = cluster.inputs["spec"]["workerGroupSpecs"][0]["template"]["spec"]["resourceClaims"]
    return str(claim["resourceClaimTemplateName"])


@pytest.mark.parametrize("api", ["v1", "v1beta2", "v1beta1"])
def test_the_template_is_there_before_the_cluster_that_names_it(api: ResourceApi) -> None:
    recorder = registered(BY_NETWORKS, {"workers": 2}, api)
    kinds = [registration.type.rpartition(":")[2] for registration in recorder.registrations]
    assert kinds[:2] == ["Berth", "Namespace"]
    # What keeps it apart is there before it too, in any order.
    assert "ResourceClaimTemplate" in kinds
    assert kinds[-1] == "RayCluster"
    (template,) = recorder.of_type(f"kubernetes:resource.k8s.io/{api}:ResourceClaimTemplate")
    metadata = template.inputs["metadata"]
    assert (metadata["name"], metadata["namespace"]) == (template_of(recorder), "berth-x")
    assert metadata["labels"]["berth/cluster"] == "x"
    assert template.name == f"x-{metadata['name']}"


def test_another_version_of_the_api_restarts_nobody() -> None:
    (old,) = registered(BY_NETWORKS, {}, "v1beta1").of_type(RAY_CLUSTER)
    (new,) = registered(BY_NETWORKS, {}, "v1").of_type(RAY_CLUSTER)
    assert old.inputs == new.inputs


@pytest.mark.parametrize("api", get_args(ResourceApi))
def test_the_template_is_the_same_resource_in_every_version_of_the_api(api: ResourceApi) -> None:
    """Otherwise Pulumi would create it again, and then delete the object by its old type."""
    cluster, pools = complete(BY_NETWORKS, "clusters", {})
    inputs = BerthInputs(cluster_workload(cluster, "cluster"), pools, "lab", "lab", api)
    options = options_of(lambda given: Berth("x", inputs, given), "lab")
    types: set[str] = set()
    for type_, given in options.items():
        if type_.endswith(":ResourceClaimTemplate"):
            aliases = [alias for alias in given.aliases or [] if isinstance(alias, pulumi.Alias)]
            types |= {type_, *(str(alias.type_) for alias in aliases)}
    assert types == {
        f"kubernetes:resource.k8s.io/{item}:ResourceClaimTemplate" for item in get_args(ResourceApi)
    }


def test_a_changed_claim_is_a_new_template_and_the_cluster_follows() -> None:
    before = registered(PAIRED, {"worker": {"gpus": 2}})
    after = registered(PAIRED, {"worker": {"gpus": 4}})
    assert template_of(before).startswith("2-gpu-nic-")
    assert template_of(after).startswith("4-gpu-nic-")
    registrations = [*before.registrations, *after.registrations]
    names = [resource.name for resource in registrations if "Claim" in resource.type]
    assert names == [f"x-{template_of(before)}", f"x-{template_of(after)}"]


@pytest.mark.parametrize(
    ("worker", "domains"), [({}, 1), ({"nics": 0}, 0), ({"gpus": 2, "nics": 2}, 0)]
)
def test_nvlink_joins_the_workers_that_take_whole_nodes(
    worker: dict[str, Any], domains: int
) -> None:
    """Workers of cluster-toolkit's examples/gke-a4x/nccl-jobset-example.yaml."""
    recorder = registered(NVLINKED, BOTH | {"workers": 2, "worker": worker})
    (cluster,) = recorder.of_type(RAY_CLUSTER)
    pod = cluster.inputs["spec"]["workerGroupSpecs"][0]["template"]["spec"]
    claims = {
        claim["name"]: claim["resourceClaimTemplateName"]
        for claim in pod.get("resourceClaims") or []
    }
    nvlink = recorder.of_type("kubernetes:resource.nvidia.com/v1beta1:ComputeDomain")
    assert (claims.get("nvlink"), len(nvlink)) == ("nvlink" if domains else None, domains)
    assert [
        claim["name"] for claim in pod["containers"][0]["resources"].get("claims") or []
    ] == list(claims)
    assert {
        "key": "kubernetes.io/arch",
        "operator": "Equal",
        "value": "arm64",
        "effect": "NoSchedule",
    } in pod["tolerations"]
    for domain in nvlink:
        assert domain.inputs["spec"] == {
            "numNodes": 0,
            "channel": {"resourceClaimTemplate": {"name": "nvlink"}},
        }


def test_without_claims_there_is_no_template() -> None:
    assert [
        registration.type
        for registration in registered(A4, {}).registrations
        if "Claim" in registration.type
    ] == []


@pytest.mark.parametrize(
    ("pool", "shape", "gpus", "claimed"),
    [
        (
            PAIRED,
            {"workers": {"min": 0, "max": 3}, "worker": {"gpus": 2}},
            "6",
            {"gpu.nvidia.com": 6, "dranet": 6},
        ),
        (PAIRED_MANAGED, {"workers": 1}, "8", {"gpu.nvidia.com": 8, "mrdma.google.com": 8}),
        (BY_NETWORKS, {"workers": 2}, "16", {"dranet": 16}),
        (
            NVLINKED,
            BOTH | {"workers": 2},
            "8",
            {"mrdma.google.com": 8, "compute-domain-default-channel.nvidia.com": 2},
        ),
        (NVLINKED, BOTH | {"worker": {"nics": 0}}, "4", {}),
        (PAIRED, {"worker": {"gpus": 0, "pool": "train", "cpu": 4, "memory": "8Gi"}}, "0", {}),
    ],
)
def test_its_quota_lets_it_have_the_devices_of_its_claims(
    pool: dict[str, Any], shape: dict[str, Any], gpus: str, claimed: dict[str, int]
) -> None:
    quotas = {
        item.name: item
        for item in registered(pool, shape).of_type("kubernetes:core/v1:ResourceQuota")
    }
    hard = quotas["x-berth"].inputs["spec"]["hard"]
    assert hard["requests.nvidia.com/gpu"] == gpus
    assert {
        name: int(hard[f"{name}.deviceclass.resource.k8s.io/devices"]) for name in DEVICE_CLASSES
    } == {name: claimed.get(name, 0) for name in DEVICE_CLASSES}


@pytest.mark.parametrize(
    ("part", "how"), [(None, "made"), ("isolation", "taken over"), ("cluster", "read")]
)
def test_the_admins_half_has_the_claim_templates(part: Any, how: str) -> None:
    """The engineer's half, which had them in older versions, reads them: Pulumi deletes none."""
    cluster, pools = complete(CLAIMED, "engineers", {"access": {"users": ["x@example.com"]}})

    async def program() -> None:
        Berth(
            "x", BerthInputs(cluster_workload(cluster, "engineer"), pools, "lab", "lab", part=part)
        )

    (template,) = [
        item for item in run(program, "lab").registrations if "ResourceClaimTemplate" in item.type
    ]
    assert ("pulumi.com/patchForce" in template.inputs["metadata"]["annotations"]) == (
        how == "taken over"
    )
    assert bool(template.id) == (how == "read")


@pytest.mark.parametrize(("workers", "forced"), [({"min": 0, "max": 2}, "true"), (2, None)])
def test_only_what_rays_autoscaler_writes_to_is_applied_over_it(
    workers: int | dict[str, int], forced: str | None
) -> None:
    recorder = registered(A4, {"workers": workers})
    annotations = {
        registration.name: registration.inputs["metadata"]["annotations"]
        for registration in recorder.registrations[1:]
    }
    assert annotations["x"].get("pulumi.com/patchForce") == forced
    # The namespace is not: by it the API server refuses a berth that another stack has.
    assert [
        name for name, annotation in annotations.items() if "pulumi.com/patchForce" in annotation
    ] == (["x"] if forced else [])


@pytest.mark.parametrize(
    ("home", "stays"), [("50Gi", True), ({"size": "50Gi", "retain": False}, False)]
)
def test_the_claim_of_a_home_stays_and_the_namespace_with_it(home: Any, stays: bool) -> None:
    cluster, pools = complete(BY_NETWORKS, "engineers", {"home": home})
    inputs = BerthInputs(cluster_workload(cluster), pools, "lab", "lab")
    options = options_of(lambda given: Berth("x", inputs, given), "lab")
    retained = {
        kind.rpartition(":")[2] for kind, given in options.items() if given.retain_on_delete
    }
    assert retained == {"PersistentVolumeClaim", *(["Namespace"] if stays else [])}
    # What is deleted with its namespace would stay with it.
    assert any(given.deleted_with is not None for given in options.values()) != stays
    assert (
        "berth/keeps-home" in berth_manifests(inputs).namespace["metadata"]["annotations"]
    ) == stays


def test_a_default_berth_is_few_resources_and_what_is_inside_goes_with_the_namespace() -> None:
    cluster, pools = complete(BY_NETWORKS, "engineers", {})
    inputs = BerthInputs(cluster_workload(cluster), pools, "lab", "lab")
    options = options_of(lambda given: Berth("x", inputs, given), "lab")
    kinds = {kind.rpartition(":")[2]: given for kind, given in options.items()}
    assert set(kinds) == INSIDE | {"Berth", "Namespace", "RayCluster"}
    with_namespace = {kind for kind, given in kinds.items() if given.deleted_with is not None}
    assert with_namespace == INSIDE


def test_a_component_with_another_name_than_its_berth_is_refused_without_an_alias() -> None:
    """Pulumi deletes the objects of the old name last, and those of the new name are the same."""
    cluster, pools = complete(BY_NETWORKS, "clusters", {})
    inputs = BerthInputs(cluster_workload(cluster, "cluster"), pools, "lab", "lab", "v1")

    async def renamed() -> None:
        Berth("y", inputs)

    with pytest.raises(
        pulumi.RunError, match=r"component 'y' is for berth 'x'.*aliases=\[pulumi.Alias"
    ):
        run(renamed, "lab")

    async def aliased() -> None:
        Berth("y", inputs, pulumi.ResourceOptions(aliases=[pulumi.Alias(name="x")]))

    assert run(aliased, "lab").of_type(RAY_CLUSTER)
