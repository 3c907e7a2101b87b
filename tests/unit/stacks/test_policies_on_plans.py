"""Policy violations in an engine's plan, where a change of code would show
(policies_on_plans.yaml).
"""

from typing import Any

import pulumi
import pytest

from berth.components.berth import Berth
from berth.components.cluster.provider import kubernetes_provider
from berth.components.plan.fleet import GKE_CLUSTER, NODE_POOL, RAY_CLUSTER
from berth.stacks.policies.policy import Planned, PolicyContext, Violation, waivers
from berth.stacks.policies.registry import POLICIES, violations
from tests.unit import recording
from tests.unit.cases import over, says, table
from tests.unit.loaded import environment_of, environment_values

TABLE = table(__file__, "policies_on_plans.yaml")
CASES = TABLE["cases"]
INPUTS = TABLE["inputs"]
SETTINGS: dict[str, Any] = environment_values(
    train={"machineType": "a4-highgpu-8g", "nodes": 1, "rdma": "managed"}
) | {
    "defaults": {"image": "rayproject/ray:2.60.0-py311-cu128@sha256:" + "0" * 64},
    "clusters": {"train": {}},
}
CONTEXT = PolicyContext(production=True, required_labels=["owner"], rdma={"train": 8})
WITHOUT_TOKENS = {"spec": {"authOptions": None}}


def ray(edit: dict[str, Any] | None = None) -> dict[str, Any]:
    return dict(over(environment_of("test", SETTINGS).berths[0].manifests.main, edit or {}))


def found(
    resource_type: str, inputs: dict[str, Any], context: PolicyContext = CONTEXT
) -> list[tuple[str, str]]:
    breaches = violations([Planned(resource_type, "it", inputs)], context)
    assert all(
        (breach.type, breach.resource, breach.waived) == (resource_type, "it", "")
        for breach in breaches
    )
    return [(breach.policy, breach.message) for breach in breaches]


@pytest.mark.parametrize("name", CASES)
def test_a_resource(name: str) -> None:
    case = CASES[name]
    if case["of"] == "ray":
        breaches = found(RAY_CLUSTER, ray(case["edit"]))
    else:
        base = INPUTS.get(case["of"], {"type": case["of"], "inputs": {}})
        breaches = found(base["type"], over(base["inputs"], case["edit"]))
    assert [policy for policy, _ in breaches] == ([case["policy"]] if "policy" in case else [])
    assert all(says(message, case["says"]) for _, message in breaches), breaches


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
    def within(inputs: dict[str, Any]) -> dict[str, Any]:
        for key in reversed(path):
            inputs = {key: inputs}
        return inputs

    assert found(resource_type, within(ray()["spec"])) == []
    ((policy, message),) = found(resource_type, within(ray(WITHOUT_TOKENS)["spec"]))
    assert (policy, "does not ask for a token" in message) == ("ray-auth", True)


NETWORKS = [{"network": f"n{number}", "subnetwork": "s"} for number in range(9)]


@pytest.mark.parametrize(
    ("network", "breaches"),
    [
        ({"acceleratorNetworkProfile": "auto"}, [("rdma-whole", "train")]),
        ({"additionalNodeNetworkConfigs": NETWORKS}, [("rdma-whole", "train")]),
        ({}, []),
    ],
    ids=["managed", "networks", "none"],
)
def test_a_plans_own_pools_are_known_to_have_rdma(
    network: dict[str, Any], breaches: list[tuple[str, str]]
) -> None:
    pool = {
        "name": "train",
        "nodeConfig": {"machineType": "a4-highgpu-8g"},
        "networkConfig": network,
    }
    part = ray(CASES["half of a node"]["edit"])
    planned = [Planned(NODE_POOL, "train", pool), Planned(RAY_CLUSTER, "train", part)]
    assert [
        (breach.policy, breach.resource) for breach in violations(planned, PolicyContext())
    ] == breaches


def test_another_cluster_is_not_asked() -> None:
    assert (
        found(GKE_CLUSTER, {"deletionProtection": False}, PolicyContext(required_labels=["owner"]))
        == []
    )


def test_a_waived_policy_is_still_told_with_its_reason() -> None:
    context = PolicyContext(waived={"ray-auth": "a test"})
    breaches = violations(
        [Planned(RAY_CLUSTER, name, ray(WITHOUT_TOKENS)) for name in ("a", "b")], context
    )
    assert [(breach.resource, breach.waived) for breach in breaches] == [
        ("a", "a test"),
        ("b", "a test"),
    ]
    assert [str(waiver) for waiver in waivers(breaches)] == [
        "policy ray-auth is waived for a, b: a test"
    ]


def test_what_is_of_no_known_shape_is_not_stumbled_over() -> None:
    for inputs in (
        {},
        {"spec": "[secret]", "metadata": 5},
        {"spec": {"workerGroupSpecs": [None, "x"], "authOptions": 1}},
    ):
        for resource_type in (
            RAY_CLUSTER,
            "kubernetes:core/v1:Service",
            NODE_POOL,
            "aws:s3:Bucket",
        ):
            breaches = violations([Planned(resource_type, "it", inputs)], CONTEXT)
            assert all(isinstance(breach, Violation) for breach in breaches)


@pytest.mark.parametrize("dashboard", ["private", "internal", "public"])
def test_a_berth_as_it_is_registered_is_judged_as_its_settings_are(dashboard: str) -> None:
    """The same words from the settings and from the plan: one reads what the other makes."""
    values: dict[str, Any] = {
        **SETTINGS,
        "clusters": {"train": {"dashboard": dashboard}},
        "policies": {"waived": {"private-dashboard": "a test"}},
    }
    (inputs,) = environment_of("test", values).berths

    async def program() -> None:
        provider = kubernetes_provider("cluster", "{}", "cluster")
        Berth("train", inputs, pulumi.ResourceOptions(providers={"kubernetes": provider}))

    recorder = recording.run(program, "test")
    planned = [
        Planned(resource.type, resource.name, resource.inputs)
        for resource in recorder.registrations
    ]
    breaches = violations(planned, PolicyContext(rdma={"train": 8}))
    assert [breach.policy for breach in breaches] == (
        ["private-dashboard"] if dashboard == "public" else []
    )


def test_every_policy_describes_itself() -> None:
    for name, policy in POLICIES.items():
        assert name == policy.name
        assert policy.asks.endswith(".")
        assert policy.why.endswith(".")
