"""Policy violations in an engine's plan, where a change of code would show."""

from __future__ import annotations

import copy
from typing import Any

import pulumi
import pytest

from berth.components.berth import Berth
from berth.components.cluster.provider import kubernetes_provider
from berth.components.plan.fleet import GKE_CLUSTER, NODE_POOL, RAY_CLUSTER
from berth.stacks.policies.policy import Planned, PolicyContext, Violation, waivers
from berth.stacks.policies.registry import POLICIES, violations
from tests.unit import recording
from tests.unit.loaded import environment_of, environment_values

SERVICE = "kubernetes:core/v1:Service"
SETTINGS: dict[str, Any] = environment_values(train={"machineType": "a4-highgpu-8g", "nodes": 1, "rdma": "managed"}) | {
    "defaults": {"image": "rayproject/ray:2.60.0-py311-cu128@sha256:" + "0" * 64},
    "clusters": {"train": {}},
}
CONTEXT = PolicyContext(production=True, required_labels=["owner"], rdma={"train": 8})


def ray() -> dict[str, Any]:
    manifests = environment_of("test", SETTINGS).berths[0].manifests
    assert manifests
    return manifests.main


def changed(manifest: dict[str, Any], value: Any, *path: str | int) -> dict[str, Any]:
    manifest = copy.deepcopy(manifest)
    inner: Any = manifest
    for part in path[:-1]:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else inner[part]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return manifest


def found(resource_type: str, inputs: dict[str, Any], context: PolicyContext = CONTEXT) -> list[tuple[str, str]]:
    breaches = violations([Planned(resource_type, "it", inputs)], context)
    assert all((breach.type, breach.resource, breach.waived) == (resource_type, "it", "") for breach in breaches)
    return [(breach.policy, breach.message) for breach in breaches]


def one(resource_type: str, inputs: dict[str, Any], name: str, words: str) -> None:
    ((policy, message),) = found(resource_type, inputs)
    assert policy == name
    assert words in message


def test_what_berth_makes_keeps_every_policy() -> None:
    assert found(RAY_CLUSTER, ray()) == []


@pytest.mark.parametrize("mode", ["disabled", "", "(known later)", "[secret]", None])
def test_a_ray_cluster_that_does_not_surely_ask_for_a_token(mode: str | None) -> None:
    one(RAY_CLUSTER, changed(ray(), mode, "spec", "authOptions", "mode"), "ray-auth", "use `auth: token`")


def test_a_ray_cluster_without_auth_options() -> None:
    one(RAY_CLUSTER, changed(ray(), None, "spec", "authOptions"), "ray-auth", "does not ask for a token")


@pytest.mark.parametrize(
    ("resource_type", "path"),
    [
        ("kubernetes:ray.io/v1:RayJob", ("spec", "rayClusterSpec")),
        ("kubernetes:ray.io/v1:RayService", ("spec", "rayClusterConfig")),
        ("kubernetes:ray.io/v1:RayCronJob", ("spec", "jobTemplate", "rayClusterSpec")),
        ("kubernetes:ray.io/v1alpha1:RayCluster", ("spec",)),
    ],
)
def test_the_ray_cluster_inside_another_kind(resource_type: str, path: tuple[str, ...]) -> None:
    spec = ray()["spec"]
    assert found(resource_type, changed({}, spec, *path)) == []
    without = {key: value for key, value in spec.items() if key != "authOptions"}
    one(resource_type, changed({}, without, *path), "ray-auth", "does not ask for a token")


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ("LoadBalancer", ("headGroupSpec", "serviceType"), "the head's Service of train is a load balancer"),
        ("NodePort", ("headGroupSpec", "serviceType"), "the head's Service of train is of type NodePort"),
        ("LoadBalancer", ("headGroupSpec", "headService", "spec", "type"), "is a load balancer with a public address"),
        ("(known later)", ("headGroupSpec", "serviceType"), "is of type (known later)"),
        (True, ("headGroupSpec", "enableIngress"), "train has an Ingress (enableIngress)"),
    ],
)
def test_a_ray_cluster_that_is_reached_from_outside(value: object, path: tuple[str, ...], words: str) -> None:
    one(RAY_CLUSTER, changed(ray(), value, "spec", *path), "private-dashboard", words)


@pytest.mark.parametrize(
    "where", [("headServiceAnnotations",), ("headGroupSpec", "headService", "metadata", "annotations")]
)
def test_an_internal_load_balancer_of_a_head_is_allowed(where: tuple[str, ...]) -> None:
    manifest = changed(ray(), "LoadBalancer", "spec", "headGroupSpec", "serviceType")
    annotations = {"networking.gke.io/load-balancer-type": "Internal"}
    assert found(RAY_CLUSTER, changed(manifest, annotations, "spec", *where)) == []


@pytest.mark.parametrize(
    ("spec", "annotations", "words"),
    [
        ({"type": "ClusterIP"}, {}, ""),
        ({}, {}, ""),
        ({"type": "LoadBalancer"}, {"networking.gke.io/load-balancer-type": "Internal"}, ""),
        ({"type": "LoadBalancer"}, {"networking.gke.io/load-balancer-type": "External"}, "a public address"),
        ({"type": "LoadBalancer"}, {}, "a public address"),
        ({"type": "NodePort"}, {}, "Service ui is of type NodePort"),
    ],
)
def test_services(spec: dict[str, str], annotations: dict[str, str], words: str) -> None:
    inputs = {"metadata": {"name": "ui", "annotations": annotations}, "spec": spec}
    if words:
        one(SERVICE, inputs, "private-dashboard", words)
    else:
        assert found(SERVICE, inputs) == []


@pytest.mark.parametrize(
    "resource_type",
    [
        "kubernetes:networking.k8s.io/v1:Ingress",
        "kubernetes:extensions/v1beta1:Ingress",
        "kubernetes:gateway.networking.k8s.io/v1:Gateway",
        "kubernetes:gateway.networking.k8s.io/v1:HTTPRoute",
    ],
)
def test_what_lets_requests_in(resource_type: str) -> None:
    kind = resource_type.rsplit(":", 1)[-1]
    one(resource_type, {"metadata": {"name": "ui"}}, "private-dashboard", f"{kind} ui lets requests in")


GPUS = ("spec", "workerGroupSpecs", 0, "template", "spec", "containers", 0, "resources", "limits", "nvidia.com/gpu")


@pytest.mark.parametrize("count", ["4", None])
def test_part_of_a_node_with_rdma(count: str | None) -> None:
    words = f"a worker of train takes {count or 0} of the 8 GPUs of a node of pool 'train'"
    one(RAY_CLUSTER, changed(ray(), count, *GPUS), "rdma-whole", words)


NETWORKS = [{"network": f"n{number}", "subnetwork": "s"} for number in range(9)]


@pytest.mark.parametrize(
    "network",
    [{"acceleratorNetworkProfile": "auto"}, {"additionalNodeNetworkConfigs": NETWORKS}],
    ids=["managed", "networks"],
)
def test_a_plans_own_pools_are_known_to_have_rdma(network: dict[str, Any]) -> None:
    pool = {"name": "train", "nodeConfig": {"machineType": "a4-highgpu-8g"}, "networkConfig": network}
    breaches = violations(
        [Planned(NODE_POOL, "train", pool), Planned(RAY_CLUSTER, "train", changed(ray(), "2", *GPUS))], PolicyContext()
    )
    assert [(breach.policy, breach.resource) for breach in breaches] == [("rdma-whole", "train")]
    without = [
        Planned(NODE_POOL, "train", pool | {"networkConfig": {}}),
        Planned(RAY_CLUSTER, "train", changed(ray(), "2", *GPUS)),
    ]
    assert violations(without, PolicyContext()) == []


@pytest.mark.parametrize(
    "config",
    [
        {"labels": {"nvidia.com/device-plugin.config": "any"}},
        {"guestAccelerators": [{"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING"}}]},
    ],
)
def test_a_pool_with_rdma_that_shares_its_gpus(config: dict[str, Any]) -> None:
    one(
        NODE_POOL,
        {"name": "train", "nodeConfig": config | {"serviceAccount": "nodes@some-project.iam.gserviceaccount.com"}},
        "rdma-whole",
        "pool 'train' has RDMA and shares its GPUs",
    )


OFFICE = [{"displayName": "office", "cidrBlock": "203.0.113.0/24"}]
CLUSTER = {
    "name": "prod",
    "deletionProtection": True,
    "resourceLabels": {"owner": "me"},
    "masterAuthorizedNetworksConfig": {"cidrBlocks": OFFICE},
}


def test_a_production_cluster() -> None:
    assert found(GKE_CLUSTER, CLUSTER) == []
    assert found(GKE_CLUSTER, {key: value for key, value in CLUSTER.items() if key != "deletionProtection"}) == []
    one(GKE_CLUSTER, CLUSTER | {"deletionProtection": False}, "deletion-protection", "cluster prod")
    one(GKE_CLUSTER, CLUSTER | {"resourceLabels": {"team": "x"}}, "required-labels", "lacks label owner")


INTERNET = [{"displayName": "all", "cidrBlock": "0.0.0.0/0"}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"masterAuthorizedNetworksConfig": None}, "the whole internet"),
        ({"masterAuthorizedNetworksConfig": "(known later)"}, "the whole internet"),
        ({"masterAuthorizedNetworksConfig": {"cidrBlocks": [*OFFICE, *INTERNET]}}, "most of the internet"),
        ({"masterAuthorizedNetworksConfig": {"cidrBlocks": [{"cidrBlock": "[secret]"}]}}, "most of the internet"),
        (
            {"masterAuthorizedNetworksConfig": {"cidrBlocks": OFFICE, "gcpPublicCidrsAccessEnabled": True}},
            "every public address of Google Cloud",
        ),
        (
            {"masterAuthorizedNetworksConfig": None, "controlPlaneEndpointsConfig": {"ipEndpointsConfig": {}}},
            "the whole internet",
        ),
    ],
)
def test_a_control_plane_that_is_open_to_the_internet(change: dict[str, Any], words: str) -> None:
    one(GKE_CLUSTER, CLUSTER | change, "restricted-control-plane", words)


@pytest.mark.parametrize(
    "change",
    [
        {"masterAuthorizedNetworksConfig": {"cidrBlocks": []}},
        {"masterAuthorizedNetworksConfig": {}},
        {"masterAuthorizedNetworksConfig": None, "privateClusterConfig": {"enablePrivateEndpoint": True}},
        {
            "masterAuthorizedNetworksConfig": None,
            "controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": False}},
        },
    ],
)
def test_a_control_plane_that_named_networks_reach_or_that_has_a_dns_name_only(change: dict[str, Any]) -> None:
    assert found(GKE_CLUSTER, CLUSTER | change) == []


def test_nodes_run_as_an_account_of_their_own() -> None:
    def nodes(account: str | None) -> dict[str, Any]:
        return {"name": "cpu", "nodeConfig": {"serviceAccount": account}}

    assert found(NODE_POOL, nodes("prod-nodes@some-project.iam.gserviceaccount.com")) == []
    for account, words in {
        None: "Compute Engine's default account",
        "default": "Compute Engine's default account",
        "12-compute@developer.gserviceaccount.com": "Compute Engine's default account",
        "(known later)": "may be any account",
    }.items():
        one(NODE_POOL, nodes(account), "node-service-account", words)


def test_another_cluster_is_not_asked() -> None:
    assert found(GKE_CLUSTER, {"deletionProtection": False}, PolicyContext(required_labels=["owner"])) == []


def test_a_waived_policy_is_still_told_with_its_reason() -> None:
    context = PolicyContext(waived={"ray-auth": "a test"})
    resources = [Planned(RAY_CLUSTER, name, changed(ray(), None, "spec", "authOptions")) for name in ("a", "b")]
    breaches = violations(resources, context)
    assert [(breach.resource, breach.waived) for breach in breaches] == [("a", "a test"), ("b", "a test")]
    assert [str(waiver) for waiver in waivers(breaches)] == ["policy ray-auth is waived for a, b: a test"]


def test_what_is_of_no_known_shape_is_not_stumbled_over() -> None:
    for inputs in (
        {},
        {"spec": "[secret]", "metadata": 5},
        {"spec": {"workerGroupSpecs": [None, "x"], "authOptions": 1}},
    ):
        for resource_type in (RAY_CLUSTER, SERVICE, NODE_POOL, "aws:s3:Bucket"):
            breaches = violations([Planned(resource_type, "it", inputs)], CONTEXT)
            assert all(isinstance(breach, Violation) for breach in breaches)


@pytest.mark.parametrize("dashboard", ["private", "internal", "public"])
def test_a_berth_as_it_is_registered_is_judged_as_its_settings_are(dashboard: str) -> None:
    """The same words from the settings and from the plan: one reads what the other makes."""
    waived = {"private-dashboard": "a test"}
    values: dict[str, Any] = {
        **SETTINGS,
        "clusters": {"train": {"dashboard": dashboard}},
        "policies": {"waived": waived},
    }
    (inputs,) = environment_of("test", values).berths

    async def program() -> None:
        provider = kubernetes_provider("{}", "cluster")
        Berth("train", inputs, pulumi.ResourceOptions(providers={"kubernetes": provider}))

    recorder = recording.run(program, "test")
    planned = [Planned(resource.type, resource.name, resource.inputs) for resource in recorder.registrations]
    breaches = violations(planned, PolicyContext(rdma={"train": 8}))
    assert [breach.policy for breach in breaches] == (["private-dashboard"] if dashboard == "public" else [])


def test_every_policy_describes_itself() -> None:
    for name, policy in POLICIES.items():
        assert name == policy.name
        assert policy.asks.endswith(".")
        assert policy.why.endswith(".")
