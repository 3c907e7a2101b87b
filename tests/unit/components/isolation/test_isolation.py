"""Isolation of a berth: the manifests, and the parts that derive from its pods."""

import copy
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from berth.components.core.owner import namespace_of
from berth.components.core.types import parse_quantity
from berth.components.fabric import NODE_FOLDERS
from berth.components.hardware.names import DEVICE_CLASSES, VISIBLE_DEVICES
from berth.components.isolation import (
    LONGEST_GRACE,
    RESTRICTED_VOLUMES,
    Isolation,
    IsolationInputs,
    admission_policies,
    harden,
    isolate,
    pod_policy,
    pod_security,
    pods_of,
    preview_rights,
    priority_classes,
    ray_policy,
)
from berth.components.isolation.quota import resource_quota
from berth.components.ray.manifest import dashboard_service, ray_cluster
from berth.components.ray.pod_template.refusals import (
    DEVICE_ANNOTATIONS,
    DEVICE_MOUNTS,
    NETWORK_ANNOTATIONS,
)
from berth.components.ray.storage.claims import home_claim
from tests.unit.cases import holds, table
from tests.unit.loaded import environment_of

POOLS = {
    "cpu": {"machineType": "n2-standard-16", "nodes": 1},
    "dev": {"machineType": "a4-highgpu-8g", "nodes": 2, "sharing": "two"},
    "train": {"machineType": "a4-highgpu-8g", "nodes": 2, "rdma": "networks", "capacity": "spot"},
}
SHARING = {"two": {"kind": "time-slicing", "replicas": 2, "renameByDefault": True}}
WAIVED = {"ray-auth": "a test", "private-dashboard": "a test"}
TABLE = table(__file__, "berths.yaml")
ACCESS = TABLE["objects"]["berth-that-autoscales-and-is-used-by-others"][1]["access"]


def registered(
    kind: str, shape: dict[str, Any], **environment: Any
) -> tuple[dict[str, Any], Isolation]:
    """The RayCluster of a berth `x` as it is registered, and its isolation."""
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": POOLS,
        "sharing": SHARING,
        "policies": {"waived": WAIVED},
        "defaults": {"head": {"pool": "cpu"}},
    }
    given = {key: value for key, value in (values | environment).items() if value is not None}
    loaded = environment_of("test", given | {kind: {"x": shape}})
    settings = loaded.settings
    resolved = loaded.resolved
    (cluster,) = [*resolved.berths, *resolved.clusters]
    namespace = namespace_of("x")
    labels = {"berth/engineer": "x"}
    ray = ray_cluster(cluster, resolved.pools, namespace, labels)
    dashboard = dashboard_service(cluster, namespace, labels)
    home = home_claim(cluster.home, namespace, labels)
    manifests = [ray, *([dashboard] if dashboard else []), *([home] if home else [])]
    offers = {pool.offer.resource for pool in resolved.pools.values() if pool.offer}
    inputs = IsolationInputs(
        settings.isolation_here,
        settings.operators.kuberay,
        cluster.access,
        cluster.priority,
        gpu_resources=offers,
    )
    isolation = isolate(inputs, manifests)
    return harden(ray, settings.isolation.pod_security, cluster.priority), isolation


def isolation_of(
    kind: str, shape: dict[str, Any], environment: dict[str, Any] | None = None
) -> Isolation:
    return registered(kind, shape, **(environment or {}))[1]


def of_kind(apart: Isolation, kind: str) -> list[dict[str, Any]]:
    return [item for item in apart.objects if item["kind"] == kind]


@pytest.mark.parametrize("name", TABLE["objects"])
def test_objects(golden: Callable[[str, Any], None], name: str) -> None:
    apart = isolation_of(*TABLE["objects"][name])
    # Through JSON, so that the file repeats what the objects share.
    golden(
        f"isolation/{name}",
        json.loads(json.dumps({"namespace": apart.namespace_labels, "objects": apart.objects})),
    )


@pytest.mark.parametrize("name", TABLE["quotas"])
def test_quotas(name: str) -> None:
    given, hard, *limits = TABLE["quotas"][name]
    apart = isolation_of(*given)
    (quota,) = of_kind(apart, "ResourceQuota")
    assert holds(quota["spec"]["hard"], hard), quota["spec"]["hard"]
    assert all(
        holds(of_kind(apart, "LimitRange")[0]["spec"]["limits"], [limit]) for limit in limits
    )


def test_priority_classes(golden: Callable[[str, Any], None]) -> None:
    golden("isolation/priority-classes", priority_classes())


def test_pods_say_what_restricted_asks_for(golden: Callable[[str, Any], None]) -> None:
    autoscales = {"workers": {"min": 0, "max": 3}, "worker": {"pool": "dev"}}
    ray, _ = registered("engineers", autoscales)
    golden("isolation/raycluster-that-autoscales", json.loads(json.dumps(ray)))


def test_only_clusters_of_berths_own_open_the_metadata_server() -> None:
    def metadata_rules(**environment: Any) -> int:
        _, apart = registered("engineers", {"worker": {"pool": "dev"}}, **environment)
        (pods,) = [
            item for item in of_kind(apart, "NetworkPolicy") if item["metadata"]["name"] == "pods"
        ]
        rules = pods["spec"]["egress"]
        return sum(
            "169.254.169" in json.dumps(rule["to"])
            and {"port": 53, "protocol": "TCP"} not in rule["ports"]
            for rule in rules
            if "ports" in rule
        )

    pools = {name: pool for name, pool in POOLS.items() if name != "train"}
    cluster = {"existing": {"kubeconfig": "kubeconfig"}}
    existing = {"cluster": cluster, "project": None, "zone": None, "pools": pools}
    assert metadata_rules() == 2
    assert metadata_rules(isolation={"metadataServer": False}) == 0
    assert metadata_rules(**existing) == 0
    assert metadata_rules(**existing, isolation={"metadataServer": True}) == 2


def test_every_part_can_be_switched_off() -> None:
    _, apart = registered(
        "engineers",
        {"worker": {"pool": "dev"}},
        isolation={"networkPolicies": False, "quotas": False},
    )
    # Pulumi would delete a quota after the wait for pods and Services that it refuses.
    (hard,), (limits,) = (of_kind(apart, kind) for kind in ("ResourceQuota", "LimitRange"))
    assert [hard["spec"], limits["spec"]] == [
        {"hard": {"pods": "1000000"}},
        {"limits": [{"type": "Container"}]},
    ]
    assert apart.objects == [hard, limits]
    assert apart.namespace_labels == {pod_security.ENFORCE: "restricted"}


def test_node_folders_need_a_privileged_namespace_and_pods_keep_to_the_rest() -> None:
    ray, apart = registered("clusters", {"worker": {"pool": "train"}})
    assert apart.namespace_labels == {pod_security.ENFORCE: "privileged"}
    pod = ray["spec"]["workerGroupSpecs"][0]["template"]["spec"]
    folders = {
        volume["name"]: volume["hostPath"]["path"]
        for volume in pod["volumes"]
        if "hostPath" in volume
    }
    assert tuple(folders.values()) == NODE_FOLDERS
    mounts = [mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] in folders]
    assert [mount["readOnly"] for mount in mounts] == [True, True]
    assert pod["securityContext"] == pod_security.RESTRICTED_POD
    assert pod["containers"][0]["securityContext"] == pod_security.RESTRICTED_CONTAINER
    assert pod_security.needed_by(pod_security.without_folders(pod)) == "restricted"


def test_a_looser_environment_leaves_pods_with_folders_as_they_are() -> None:
    ray, _ = registered(
        "clusters", {"worker": {"pool": "train"}}, isolation={"podSecurity": "baseline"}
    )
    assert "securityContext" not in ray["spec"]["workerGroupSpecs"][0]["template"]["spec"]


def test_the_policy_on_pods(golden: Callable[[str, Any], None]) -> None:
    golden("isolation/pod-policy", pod_policy())


def test_the_policies_name_what_pods_may_mount() -> None:
    of_pods = json.dumps(pod_policy())
    of_ray = json.dumps(ray_policy())
    assert [folder for folder in NODE_FOLDERS if folder not in of_pods] == []
    assert json.dumps(json.dumps(["name", *sorted(RESTRICTED_VOLUMES)])).strip('"') in of_ray
    assert [kind for kind in RESTRICTED_VOLUMES if f"'{kind}'" not in of_pods] == []


def test_the_policy_on_claims_admits_the_classes_that_the_quota_counts() -> None:
    assert f"in {list(DEVICE_CLASSES)}" in json.dumps(admission_policies())


def test_the_policies_name_what_settings_refuse() -> None:
    for policy in (json.dumps(pod_policy()), json.dumps(ray_policy())):
        assert [
            key
            for key in DEVICE_ANNOTATIONS
            if f"key == '{key}' || key.startsWith('{key}/')" not in policy
        ] == []
        assert f"variable.name != '{VISIBLE_DEVICES}'" in policy
        assert [key for key in NETWORK_ANNOTATIONS if key not in policy] == []
        assert f"contains('{DEVICE_MOUNTS}')" in policy
        assert policy.count(f"terminationGracePeriodSeconds.orValue(0) <= {LONGEST_GRACE})") >= 2


@pytest.mark.parametrize("name", TABLE["parts"])
def test_the_namespace_lists_what_only_its_own_pods_may_have(name: str) -> None:
    given, parts = TABLE["parts"][name]
    assert isolation_of(*given).namespace_annotations["berth/pod-parts"].splitlines() == parts


def test_the_policy_on_rays_kinds(golden: Callable[[str, Any], None]) -> None:
    golden(
        "isolation/ray-policy", json.loads(json.dumps(ray_policy(["system:serviceaccount:a:b"])))
    )


def test_the_namespace_lists_the_pools_of_the_settings() -> None:
    def facts(**shape: Any) -> tuple[str, str]:
        _, apart = registered("engineers", {"worker": {"pool": "dev"}} | shape)
        return (
            apart.namespace_annotations["berth/pools"],
            apart.namespace_annotations["berth/ray-auth"],
        )

    assert facts() == ("cpu,dev", "token")
    assert facts(head={"pool": "dev"}) == ("dev", "token")
    assert facts(auth="none") == ("cpu,dev", "disabled")


def test_nobody_makes_pods_where_pods_may_have_folders_of_their_node() -> None:
    def written(pool: str) -> set[str]:
        _, apart = registered(
            "clusters", {"worker": {"pool": pool, "gpus": 1}, "nccl": {}, "access": ACCESS}
        )
        (role,) = of_kind(apart, "Role")
        return {
            verb
            for rule in role["rules"]
            if rule["apiGroups"] == ["ray.io"]
            for verb in rule["verbs"]
        }

    assert written("dev") == {"get", "list", "watch", "create", "update", "patch", "delete"}
    _, apart = registered("clusters", {"worker": {"pool": "train"}, "access": ACCESS})
    (role,) = of_kind(apart, "Role")
    verbs = {
        verb for rule in role["rules"] if rule["apiGroups"] == ["ray.io"] for verb in rule["verbs"]
    }
    assert verbs == {"get", "list", "watch"}


def test_named_clusters_go_before_engineers_and_others_by_their_name() -> None:
    def class_of(kind: str, shape: dict[str, Any]) -> set[str]:
        ray, _ = registered(kind, {"worker": {"pool": "dev", "gpus": 1}} | shape)
        groups = [ray["spec"]["headGroupSpec"], *ray["spec"]["workerGroupSpecs"]]
        return {group["template"]["spec"]["priorityClassName"] for group in groups}

    assert class_of("engineers", {}) == {"berth-development"}
    assert class_of("clusters", {}) == {"berth-production"}
    assert class_of("engineers", {"priority": "of-the-house"}) == {"of-the-house"}


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        ("RayCluster", {"rayjobs": "100", "rayservices": "10", "raycronjobs": "10"}),
        ("RayJob", {"rayservices": "10", "raycronjobs": "10"}),
        ("RayService", {"rayjobs": "100", "raycronjobs": "10"}),
        ("RayCronJob", {"rayservices": "10"}),
    ],
)
def test_a_quota_counts_no_kind_that_the_stack_or_kuberay_creates(
    kind: str, counted: dict[str, str]
) -> None:
    """The API server refuses the first object of a kind whose usage it does not know yet."""
    quota = resource_quota("berth-alice", [{"kind": kind}], IsolationInputs())
    hard = quota["spec"]["hard"]
    assert {name: hard[name] for name in hard if name.endswith(".ray.io")} == {
        f"count/{kinds}.ray.io": room for kinds, room in counted.items()
    }


LEVELS: dict[str, list[dict[str, Any]]] = table(__file__, "levels.yaml")


@pytest.mark.parametrize(
    ("spec", "level"), [(spec, level) for level in LEVELS for spec in LEVELS[level]]
)
def test_the_strictest_level_of_a_pod(spec: dict[str, Any], level: str) -> None:
    before = copy.deepcopy(spec)
    assert pod_security.needed_by(spec) == level
    if level == "restricted":
        assert pod_security.needed_by(pod_security.with_restricted_contexts(spec)) == "restricted"
    assert spec == before


def test_what_a_pod_says_itself_stays() -> None:
    context = {"runAsUser": 2000, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}
    hardened = pod_security.with_restricted_contexts(
        {"containers": [{"name": "c", "image": "i", "securityContext": context}]}
    )
    assert hardened["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "runAsUser": 2000,
        "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
    }


def test_jobs_and_services_are_isolated_as_their_clusters_are() -> None:
    ray, _ = registered("engineers", {"worker": {"pool": "dev"}})
    plain = {"containers": [{"name": "submitter", "image": "i"}]}
    job = {
        "kind": "RayJob",
        "metadata": {},
        "spec": {"rayClusterSpec": ray["spec"], "submitterPodTemplate": {"spec": plain}},
    }
    service = {"kind": "RayService", "metadata": {}, "spec": {"rayClusterConfig": ray["spec"]}}
    assert pod_security.pod_security_level(pods_of([job, service])) == "restricted"
    submitter = harden(job, "restricted", "berth-development")["spec"]["submitterPodTemplate"][
        "spec"
    ]
    assert submitter["securityContext"]["runAsNonRoot"] is True
    assert submitter["priorityClassName"] == "berth-development"
    assert "securityContext" not in plain


def test_users_write_the_secrets_that_pods_name() -> None:
    shape = {
        "worker": {"pool": "dev", "env": {"A": {"secret": "a", "key": "k"}}},
        "secrets": {"HF_TOKEN": {}},
    }
    _, apart = registered("engineers", shape | {"imagePullSecrets": ["registry"], "access": ACCESS})
    (role,) = of_kind(apart, "Role")
    rules = [rule for rule in role["rules"] if rule["resources"] == ["secrets"]]
    assert rules == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["x"]},
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "verbs": ["get", "create", "update", "patch", "delete"],
            "resourceNames": ["a", "hf-token", "registry"],
        },
    ]


def test_a_head_with_a_home_meets_the_strictest_level_and_may_write_there() -> None:
    ray, apart = registered("engineers", {"worker": {"pool": "dev"}, "home": "50Gi"})
    assert apart.namespace_labels == {pod_security.ENFORCE: "restricted"}
    context = ray["spec"]["headGroupSpec"]["template"]["spec"]["securityContext"]
    assert (context["runAsNonRoot"], context["runAsUser"], context["fsGroup"]) == (True, 1000, 1000)


def test_the_quota_counts_the_container_that_mounts_buckets() -> None:
    def hard(**shape: Any) -> dict[str, Any]:
        _, apart = registered("engineers", {"worker": {"pool": "dev"}, "workers": 2, **shape})
        (quota,) = of_kind(apart, "ResourceQuota")
        return dict(quota["spec"]["hard"])

    without = hard()
    with_bucket = hard(volumes={"data": {"bucket": "my-bucket", "at": "/data"}})
    grown = {
        key: (without[key], value) for key, value in with_bucket.items() if value != without[key]
    }

    # A head and two workers: 250m, 512Mi and 5Gi each.
    assert {
        key: parse_quantity(after) - parse_quantity(before)
        for key, (before, after) in grown.items()
    } == {
        "requests.cpu": Decimal("0.75"),
        "limits.cpu": Decimal("0.75"),
        "requests.memory": 3 * 512 * 2**20,
        "limits.memory": 3 * 512 * 2**20,
        "requests.ephemeral-storage": 15 * 2**30,
        "limits.ephemeral-storage": 15 * 2**30,
    }


def test_users_of_previews_are_text_of_cel() -> None:
    policy, *_ = preview_rights("lab", ["𹹹@example.com", 'a"b'])
    assert '["a\\"b", "𹹹@example.com"]' in str(policy["spec"]["matchConditions"][0]["expression"])
