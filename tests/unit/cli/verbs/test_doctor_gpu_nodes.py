"""berth doctor looks at the nodes of an existing cluster: labels that say who serves GPUs, and
taints that the settings lack.
"""

from typing import Any

import pytest
import yaml

from berth.cli.verbs.doctor.nodes import check_nodes
from berth.components.hardware.names import DEPLOYED_LABEL, OPERANDS_LABEL
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.loaded import environment_of

SHARED = {"machineType": "g2-standard-24", "nodes": 2, "sharing": "any"}
WHOLE = {"machineType": "g2-standard-24", "nodes": 2}
RIGHT = {
    "dev": {"gke-no-default-nvidia-gpu-device-plugin": "true", "nvidia.com/device-plugin.config": "any"},
    "train": {OPERANDS_LABEL: "false"},
}


def settings(**pools: dict[str, Any]) -> EnvironmentSettings:
    given = {
        "cluster": {"existing": {"kubeconfig": "~/.kube/config"}},
        "sharing": {"any": {"kind": "time-slicing", "replicas": 4}},
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}, **pools},
    }
    return environment_of("test", given).settings


def node(name: str, pool: str, labels: dict[str, str] | None = None, *taints: dict[str, str]) -> dict[str, Any]:
    labels = {"cloud.google.com/gke-nodepool": pool, **(labels or {})}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(taints)} if taints else {}}


def test_nodes_with_the_right_labels_and_gkes_own_taint_are_fine() -> None:
    gke = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    nodes = [node("a", "dev", RIGHT["dev"], gke), node("b", "train", RIGHT["train"], gke), node("c", "cpu")]
    assert check_nodes(nodes, settings(dev=SHARED, train=WHOLE)) == []


def test_a_pool_of_gkes_that_does_not_opt_out_of_the_operator() -> None:
    nodes = [node("a", "train", RIGHT["train"]), node("b", "train")]
    (found,) = check_nodes(nodes, settings(dev=SHARED, train=WHOLE))
    assert found.state == "missing"
    assert found.text.startswith("pool train: 1 of 2 nodes (such as b) lack labels")
    assert found.remedy == (
        "kubectl label nodes --overwrite --selector=cloud.google.com/gke-nodepool=train "
        "nvidia.com/gpu.deploy.operands=false"
    )


def test_an_operator_that_berth_did_not_install_is_noticed_by_its_label() -> None:
    assert check_nodes([node("a", "train")], settings(train=WHOLE)) == []
    (found,) = check_nodes([node("a", "train", {DEPLOYED_LABEL: "true"})], settings(train=WHOLE))
    assert found.remedy.endswith("nvidia.com/gpu.deploy.operands=false")


def test_a_pool_whose_gpus_gke_itself_shares_is_told_since_berth_counts_whole_ones() -> None:
    labels = {"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing", "nvidia.com/gpu.deploy.operands": "false"}
    (found,) = check_nodes([node("a", "train", labels)], settings(train=WHOLE))
    assert found.state == "warning"
    assert "pool train: GKE itself shares the GPUs of its nodes (time-sharing)" in found.text
    (found,) = check_nodes(
        [node("a", "train", {"cloud.google.com/gke-gpu-partition-size": "1g.10gb"})], settings(train=WHOLE)
    )
    assert "(1g.10gb)" in found.text


def test_a_shared_pool_whose_nodes_do_not_choose_the_profile() -> None:
    labels = {"gke-no-default-nvidia-gpu-device-plugin": "true", "nvidia.com/device-plugin.config": "none"}
    (found,) = check_nodes([node("a", "dev", labels)], settings(dev=SHARED))
    assert found.remedy.endswith("gke-nodepool=dev nvidia.com/device-plugin.config=any")


def test_a_taint_that_the_settings_lack_comes_with_the_line_to_write() -> None:
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    (found,) = check_nodes([node("a", "dev", RIGHT["dev"], taint)], settings(dev=SHARED))
    assert "pool dev: nodes have the taint dedicated=ml:NoSchedule, which its settings do not name" in found.text
    written = yaml.safe_load(found.remedy.partition("taints: ")[2])
    assert check_nodes([node("a", "dev", RIGHT["dev"], taint)], settings(dev=SHARED | {"taints": written})) == []


@pytest.mark.parametrize(
    "taint",
    [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "ml", "effect": "PreferNoSchedule"},
    ],
)
def test_taints_that_pass_or_keep_nobody_away_are_left_alone(taint: dict[str, str]) -> None:
    assert check_nodes([node("a", "cpu", {}, taint)], settings()) == []
