"""Groups of workers: their settings, and what they come from."""

import json
from typing import Any

from berth.components.core.types import parse_quantity
from berth.stacks.load.stack import Environment
from tests.unit.loaded import environment_of, environment_values

POOLS = {
    "dev": {"machineType": "g2-standard-24", "nodes": 2},
    "a4": {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot", "rdma": "networks"},
}
CPU = {"pool": "cpu", "gpus": 0}
GROUPS: dict[str, Any] = {
    "cpu": CPU | {"workers": {"min": 0, "max": 4}},
    "gpu": {"workers": {"min": 0, "max": 2}, "env": {"ROLE": "small"}},
    "a4": {
        "pool": "a4",
        "workers": 0,
        "gpus": 8,
        "cpu": 100,
        "memory": "1Ti",
        "labels": {"tier": "large"},
    },
}
DEFAULTS = {"worker": {"pool": "dev", "cpu": 2, "memory": "8Gi", "env": {"LOG": "1"}}}


def environment(
    kind: str = "engineers", defaults: dict[str, Any] | None = None, **shape: Any
) -> Environment:
    return environment_of("test", values(kind, defaults, **shape))


def values(
    kind: str = "engineers", defaults: dict[str, Any] | None = None, **shape: Any
) -> dict[str, Any]:
    waived = {"policies": {"waived": {"rdma-whole": "a test"}}}
    return (
        environment_values(**POOLS)
        | waived
        | {"defaults": DEFAULTS if defaults is None else defaults, kind: {"x": shape}}
    )


def manifest(loaded: Environment) -> dict[str, Any]:
    (berth,) = loaded.berths
    return dict(berth.manifests.main)


def specs(loaded: Environment) -> dict[str, dict[str, Any]]:
    return {group["groupName"]: group for group in manifest(loaded)["spec"]["workerGroupSpecs"]}


def test_the_short_form_is_one_group_named_workers() -> None:
    short = specs(environment(workers=2, worker={"gpus": 1}))
    named = specs(environment(workerGroups={"workers": {"workers": 2, "gpus": 1}}))
    assert list(short) == ["workers"]
    assert short == named


def test_what_a_group_leaves_out_comes_from_worker() -> None:
    (berth,) = environment(worker={"memory": "12Gi"}, workerGroups=GROUPS).resolved.berths
    found = {group.name: (group.pool, group.memory, dict(group.env)) for group in berth.groups}
    assert found == {
        "a4": ("a4", "1Ti", {"LOG": "1"}),
        "cpu": ("cpu", "12Gi", {"LOG": "1"}),
        "gpu": ("dev", "12Gi", {"LOG": "1", "ROLE": "small"}),
    }


def test_a_berth_has_the_groups_of_the_defaults_and_its_own() -> None:
    defaults = DEFAULTS | {"workerGroups": {"workers": {"workers": 1}, "env": CPU}}
    (berth,) = environment(
        defaults=defaults, workerGroups={"workers": {"gpus": 2}, "env": {"workers": 3}}
    ).resolved.berths
    assert {group.name: (group.workers, group.gpus) for group in berth.groups} == {
        "env": (3, 0),
        "workers": (1, 2),
    }
    (berth,) = environment(defaults=defaults, workers=3).resolved.berths
    assert [(group.name, group.workers) for group in berth.groups] == [("workers", 3)]
    (berth,) = environment(
        defaults=DEFAULTS | {"workers": 3}, workerGroups={"one": {}}
    ).resolved.berths
    assert [(group.name, group.workers) for group in berth.groups] == [("one", 1)]


def test_another_order_is_the_same_ray_cluster() -> None:
    assert manifest(environment(workerGroups=GROUPS)) == manifest(
        environment(workerGroups=dict(reversed(GROUPS.items())))
    )


def test_a_named_clusters_groups_take_whole_nodes_of_their_pools() -> None:
    defaults = DEFAULTS | {"workerGroups": {"of-berths": {}}}
    groups = {
        "a4": {"pool": "a4"},
        "dev": {"pool": "dev", "workers": 2},
        "cpu": {"pool": "cpu", "gpus": 0, "cpu": 2},
    }
    (cluster,) = environment("clusters", defaults, workerGroups=groups).resolved.clusters
    found = {group.name: (group.gpus, group.nics, group.cpu) for group in cluster.groups}
    assert found == {"a4": (8, 8, "201"), "cpu": (0, 0, "2"), "dev": (2, 0, "21")}


def test_a_worker_on_a_small_node_has_most_of_it() -> None:
    pools = {"small": {"machineType": "g2-standard-4", "nodes": 2}}
    values = environment_values(**pools) | {
        "engineers": {"alice": {}, "bob": {"worker": {"cpu": 2}}}
    }
    workers = [berth.groups[0] for berth in environment_of("test", values).resolved.berths]
    assert [(worker.cpu, worker.memory) for worker in workers] == [("3", "12Gi"), ("2", "12Gi")]


def test_only_the_groups_with_bounds_are_the_autoscalers() -> None:
    found = specs(
        environment(
            workerGroups=GROUPS
            | {"late": CPU | {"workers": {"min": 1, "max": 3, "start": 2, "idleTimeout": "5m"}}}
        )
    )
    numbers = {
        name: tuple(
            group.get(key)
            for key in ("replicas", "minReplicas", "maxReplicas", "idleTimeoutSeconds")
        )
        for name, group in found.items()
    }
    assert numbers == {
        "a4": (0, 0, 0, None),
        "cpu": (None, 0, 4, None),
        "gpu": (None, 0, 2, None),
        "late": (2, 1, 3, 300),
    }
    spec = manifest(environment(workerGroups=GROUPS))["spec"]
    assert (
        spec["enableInTreeAutoscaling"],
        spec["autoscalerOptions"].get("idleTimeoutSeconds"),
    ) == (True, None)
    assert found["a4"]["labels"] == {"tier": "large"}
    assert "labels" not in found["cpu"]


def test_the_engine_is_not_told_to_ignore_fields_of_groups_that_may_go() -> None:
    """The engine fails to ignore a field in a list that gets longer or shorter."""
    (named,) = environment(workerGroups=GROUPS).berths
    (short,) = environment(workers={"min": 0, "max": 2}).berths
    assert list(named.workload.ignore_changes) == []
    assert list(short.workload.ignore_changes) == ["spec.workerGroupSpecs[*].replicas"]


def test_quota_and_demands_are_sums_over_groups() -> None:
    groups = {
        "cpu": CPU | {"workers": {"min": 1, "max": 4}},
        "gpu": {"workers": 2, "gpus": 2},
        "a4": GROUPS["a4"] | {"workers": 1},
    }
    loaded = environment(workerGroups=groups)
    (berth,) = loaded.berths
    (quota,) = [found for found in berth.manifests.objects if found["kind"] == "ResourceQuota"]
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "12"
    assert quota["spec"]["hard"]["count/resourceclaims.resource.k8s.io"] == "1"
    pods = 1 + 4 + 2 + 1
    reserve = 20
    assert quota["spec"]["hard"]["pods"] == str(pods + reserve)
    assert parse_quantity(quota["spec"]["hard"]["limits.memory"]) > parse_quantity("1Ti")
    of_gpus = [demand for demand in loaded.resolved.demands if demand.gpus]
    found = {demand.pool: (demand.gpus, demand.nics, int(demand.cores)) for demand in of_gpus}
    assert found == {"dev": (4, 0, 4), "a4": (8, 8, 100)}


def test_a_setting_of_nccl_counts_in_the_groups_with_gpus() -> None:
    groups = {"cpu": CPU | {"memory": "1Gi"}, "a4": GROUPS["a4"] | {"workers": 1}}
    (berth,) = environment(
        nccl={"profile": "a4", "sharedMemory": "64Gi"}, workerGroups=groups
    ).resolved.berths
    assert berth.groups[0].nccl.profile == "a4"
    found = specs(environment(nccl={"profile": "a4", "sharedMemory": "64Gi"}, workerGroups=groups))
    assert "volumes" not in found["cpu"]["template"]["spec"]
    assert found["a4"]["template"]["spec"]["volumes"][-1]["emptyDir"]["sizeLimit"] == "64Gi"


def test_each_kind_of_claim_has_a_template_of_its_own() -> None:
    groups = {"all": GROUPS["a4"], "one": {"pool": "a4", "gpus": 1, "nics": 1}, "cpu": CPU}
    claims = {
        name: [
            claim["resourceClaimTemplateName"].rpartition("-")[0]
            for claim in group["template"]["spec"].get("resourceClaims", [])
        ]
        for name, group in specs(environment(workerGroups=groups)).items()
    }
    assert claims == {"all": ["all-nic"], "one": ["one-nic"], "cpu": []}


def test_rays_labels_reach_pods_and_no_shell() -> None:
    loaded = environment(worker={"labels": {"example.com/tier": "large"}})
    assert json.dumps(specs(loaded)["workers"]["labels"]) == '{"example.com/tier": "large"}'
