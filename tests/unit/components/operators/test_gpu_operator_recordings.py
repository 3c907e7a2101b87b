"""Values and labels that berth sets, held to recordings of the GPU Operator v26.7.0 and its
ClusterPolicy's schema.

The recordings and the schema are in ../shared/upstream/gpu-operator; where a clone has no such
folder, the facts at the top stand for them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.gke import tolerations
from berth.components.hardware.names import OPERANDS_LABEL
from berth.components.sharing import node_labels, offered_pools
from berth.stacks.files import stack_file
from berth.stacks.load.stack import load
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.components.operators.test_gpu_operator import GPU_POOL, TIME_SLICING, fleet

ROOT = Path(__file__).resolve().parents[4]
UPSTREAM = ROOT.parent / "shared" / "upstream" / "gpu-operator"

DEFAULT_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""The chart's own `daemonsets.tolerations` (F1)."""
MIG_STRATEGIES = {"none", "single", "mixed"}
MIG_DEFAULTS = {"all-disabled", ""}
"""MIG strategies and default configurations that the ClusterPolicy's schema accepts (G5)."""
PLUGIN_WORKLOAD = "false"
"""Value of WITH_WORKLOAD in the validator's plugin-validation where nobody sets it (A1)."""

PROFILES: list[dict[str, Any]] = [
    {"kind": "none"},
    TIME_SLICING,
    {"kind": "mps", "replicas": 2},
    {"kind": "mig", "strategy": "single", "profile": "1g.23gb"},
    {"kind": "mig", "strategy": "mixed", "profile": "1g.23gb"},
]


def recorded(case: str) -> dict[str, Any]:
    folder = UPSTREAM / "recordings"
    if not folder.is_dir():
        pytest.skip("the recordings (../shared/upstream/gpu-operator/recordings) are not at hand")
    (path,) = folder.glob(f"{case}-*.json")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def schema() -> Mapping[str, Any]:
    path = UPSTREAM / "nvidia.com_clusterpolicies.yaml"
    if not path.is_file():
        pytest.skip("the real chart's data (../shared/upstream/gpu-operator) is not at hand")
    version = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["versions"][0]
    return dict(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])


def daemons_on(output: Mapping[str, Any], node: str) -> list[str]:
    return [item["name"] for item in output["daemonSets"] if node in item["podsOnNodes"]]


# The operator stays off the pools of others.


@pytest.mark.parametrize(
    "path", sorted((ROOT / "stacks").rglob("Pulumi.*.yaml")), ids=lambda path: path.stem
)
def test_every_gpu_pool_of_a_shipped_stack_is_served_by_one(path: Path) -> None:
    file = stack_file.read_stack_file(path)
    settings = load(path.stem.removeprefix("Pulumi."), file.settings, file).settings
    if not isinstance(settings, EnvironmentSettings):
        pytest.skip("an engineer's stack has no pools")
    for pool in offered_pools(settings.pools, settings.sharing).values():
        labels = node_labels(pool)
        if pool.settings.machine.gpus:
            assert (labels.get(OPERANDS_LABEL) == "false") is not pool.settings.by_operator, (
                pool.name
            )


def test_the_real_operator_leaves_a_pool_with_berths_label_alone() -> None:
    managed = recorded("B2")["output"]
    assert "nvidia-device-plugin-daemonset" in daemons_on(managed, "managed-1"), (
        "without it the operator serves the pool"
    )
    opted_out = recorded("C1")
    labels = node_labels(fleet({})[0].pools["dev"])
    assert labels.items() <= opted_out["input"]["nodes"]["managed-1"]["labels"].items()
    assert daemons_on(opted_out["output"], "managed-1") == []
    steps = [
        step
        for step in opted_out["then"]
        if labels.items() <= (step["change"].get("labels") or {}).items()
    ]
    assert steps, "the label also comes later, on nodes that the operator serves already"
    assert all(daemons_on(step["output"], "managed-1") == [] for step in steps)


def test_the_real_operator_leaves_a_pool_of_claimed_gpus_alone() -> None:
    case = recorded("C2")
    labels = node_labels(fleet({"gpuAllocation": "dra"})[0].pools["dev"])
    assert labels.items() <= case["input"]["nodes"]["dra-1"]["labels"].items()
    assert daemons_on(case["output"], "dra-1") == []
    assert all(daemons_on(step["output"], "dra-1") == [] for step in case["then"])


# Nodes without a label have whole GPUs.


def test_nodes_without_a_label_get_the_default_that_is_whole_gpus() -> None:
    case = recorded("D1")
    plugin = next(
        item
        for item in case["output"]["daemonSets"]
        if item["name"] == "nvidia-device-plugin-daemonset"
    )
    default = case["input"]["clusterPolicySpec"]["devicePlugin"]["config"]["default"]
    manager = next(
        container for container in plugin["containers"] if container["name"] == "config-manager"
    )
    assert manager["env"]["DEFAULT_CONFIG"] == default
    assert manager["env"]["NODE_LABEL"] in node_labels(fleet({"sharing": "any"})[0].pools["dev"])
    # So what berth sends as `default` is what a node without the label reads.
    config = fleet({"sharing": "any"})[1].values()["devicePlugin"]["config"]
    assert "sharing" not in yaml.safe_load(config["data"][config["default"]])


# Taints.


def tolerated(taints: list[dict[str, str]], by: list[dict[str, str]]) -> bool:
    return all(
        any(
            (item["key"], item["effect"]) == (taint["key"], taint["effect"])
            and (item["operator"] == "Exists" or item.get("value", "") == taint.get("value", ""))
            for item in by
        )
        for taint in taints
    )


def test_the_charts_own_tolerations_are_not_enough_for_a_pools_taints() -> None:
    case = recorded("F1")
    given = case["input"]["clusterPolicySpec"]["daemonsets"]["tolerations"]
    assert given == [DEFAULT_TOLERATION]
    for name, node in case["input"]["nodes"].items():
        served = "nvidia-device-plugin-daemonset" in daemons_on(case["output"], name)
        assert served is tolerated(node.get("taints", []), given), name


@pytest.mark.parametrize(
    "taints",
    [
        [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}],
        [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoExecute"}],
        [
            {"key": "a", "value": "", "effect": "PreferNoSchedule"},
            {"key": "b", "value": "c", "effect": "NoSchedule"},
        ],
    ],
)
def test_every_daemon_tolerates_the_taints_of_the_pools_that_the_operator_serves(
    taints: list[dict[str, str]],
) -> None:
    resolved, inputs = fleet({"sharing": "any", "taints": taints})
    sent = inputs.values()
    worker = sent["node-feature-discovery"]["worker"]["tolerations"]
    for given in (
        sent["daemonsets"]["tolerations"],
        worker,
        tolerations(resolved.pools["dev"].settings),
    ):
        assert tolerated(taints, given)
        assert DEFAULT_TOLERATION in given
    # Helm replaces lists: what the chart has of its own has to be repeated.
    control_plane = {
        "key": "node-role.kubernetes.io/control-plane",
        "operator": "Equal",
        "value": "",
    }
    assert control_plane | {"effect": "NoSchedule"} in worker


def test_what_the_chart_gives_feature_discovery_by_itself_is_kept() -> None:
    worker = next(
        workload
        for workload in recorded("N1")["output"]["workloads"]
        if workload["kind"] == "DaemonSet"
    )
    sent = fleet({"sharing": "any", "taints": [{"key": "dedicated"}]})[1].values()
    for toleration in worker["tolerations"]:
        assert toleration in sent["node-feature-discovery"]["worker"]["tolerations"]


def test_taints_of_pools_that_others_serve_are_not_tolerated() -> None:
    tainted = {"machineType": "g2-standard-8", "nodes": 1, "taints": [{"key": "dedicated"}]}
    pools = {
        "cpu": {"machineType": "n2-standard-16", "nodes": 1},
        "dev": GPU_POOL | {"sharing": "any"},
        "more": tainted,
    }
    _, inputs = fleet({}, pools=pools)
    assert "daemonsets" not in inputs.values()
    _, inputs = fleet({"sharing": "any"})
    assert {"daemonsets", "node-feature-discovery"}.isdisjoint(inputs.values()), (
        "nothing is sent that the chart has"
    )


def test_nothing_is_sent_to_feature_discovery_that_another_installs() -> None:
    pool = {"sharing": "any", "taints": [{"key": "dedicated"}]}
    sent = fleet(pool, operators={"gpu": {"nodeFeatureDiscovery": False}})[1].values()
    assert "daemonsets" in sent
    assert "node-feature-discovery" not in sent


# MIG and the validator.


@pytest.mark.parametrize(
    "profile", PROFILES, ids=lambda profile: f"{profile['kind']}-{profile.get('strategy')}"
)
def test_berth_never_sends_what_the_api_server_refuses_of_mig(profile: dict[str, Any]) -> None:
    sent = fleet({"sharing": "any"}, profile)[1].values()
    assert sent["mig"]["strategy"] in MIG_STRATEGIES
    assert (sent["migManager"].get("config") or {}).get("default", "all-disabled") in MIG_DEFAULTS


def test_the_schema_takes_of_mig_what_is_known_of_it() -> None:
    spec = schema()
    assert set(spec["mig"]["properties"]["strategy"]["enum"]) == MIG_STRATEGIES
    assert (
        set(spec["migManager"]["properties"]["config"]["properties"]["default"]["enum"])
        == MIG_DEFAULTS
    )


def test_the_validators_plugin_runs_no_workload_anyway() -> None:
    """`validator: false` used to set this variable to the value that it has: H1 shows that
    nothing changes.
    """
    output = recorded("A1")["output"]
    validator = next(
        item for item in output["daemonSets"] if item["name"] == "nvidia-operator-validator"
    )
    env = {
        container["name"]: container.get("env") or {} for container in validator["initContainers"]
    }
    assert env["plugin-validation"]["WITH_WORKLOAD"] == PLUGIN_WORKLOAD
    assert "WITH_WORKLOAD" not in env["cuda-validation"], (
        "where it is unset the program takes it for true"
    )
    off = next(item for item in recorded("H1")["then"] if "WITH_WORKLOAD=false" in item["step"])
    assert off["daemonSetChanges"] == {}


def test_a_validator_that_is_switched_off_runs_no_workload() -> None:
    sent = fleet({"sharing": "any"}, operators={"gpu": {"validator": False}})[1].values()
    assert sent["validator"] == {"cuda": {"env": [{"name": "WITH_WORKLOAD", "value": "false"}]}}
    assert "validator" not in fleet({"sharing": "any"})[1].values()


def test_the_schema_has_the_validators_variables() -> None:
    assert schema()["validator"]["properties"]["cuda"]["properties"]["env"]["type"] == "array"
