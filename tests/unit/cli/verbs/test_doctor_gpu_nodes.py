"""berth doctor looks at the nodes of an existing cluster: labels that say who serves GPUs, and
taints that the settings lack.
"""

from typing import Any

import pytest
import yaml

from berth.cli.verbs.doctor.kubernetes.nodes import check_nodes
from berth.components.hardware.names import DEPLOYED_LABEL, OPERANDS_LABEL
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.loaded import environment_of

SHARED = {"machineType": "g2-standard-24", "nodes": 2, "sharing": "any"}
WHOLE = {"machineType": "g2-standard-24", "nodes": 2}
RIGHT = {
    "dev": {
        "gke-no-default-nvidia-gpu-device-plugin": "true",
        "nvidia.com/device-plugin.config": "any",
    },
    "train": {OPERANDS_LABEL: "false"},
}


def settings(sharing: dict[str, Any] | None = None, **pools: dict[str, Any]) -> EnvironmentSettings:
    given = {
        "cluster": {"existing": {"kubeconfig": "~/.kube/config"}},
        "sharing": {"any": {"kind": "time-slicing", "replicas": 4}} if sharing is None else sharing,
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}, **pools},
    }
    return environment_of("test", given).settings


def node(
    name: str, pool: str, labels: dict[str, str] | None = None, *taints: dict[str, str]
) -> dict[str, Any]:
    labels = {"cloud.google.com/gke-nodepool": pool, **(labels or {})}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)} if taints else {},
    }


def test_nodes_with_the_right_labels_and_gkes_own_taint_are_fine() -> None:
    gke = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    nodes = [
        node("a", "dev", RIGHT["dev"], gke),
        node("b", "train", RIGHT["train"], gke),
        node("c", "cpu"),
    ]
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


BY_GKE = {
    "whole": {},
    "time-sharing × 4": {
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
    },
    "mps × 2": {
        "cloud.google.com/gke-gpu-sharing-strategy": "mps",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "2",
    },
    "1g.10gb": {"cloud.google.com/gke-gpu-partition-size": "1g.10gb"},
}
DESCRIBED: dict[str, dict[str, Any]] = {
    "whole": {},
    "time-sharing × 4": {"kind": "time-slicing", "replicas": 4, "failRequestsGreaterThanOne": True},
    "mps × 2": {"kind": "mps", "replicas": 2},
    "1g.10gb": {"kind": "mig", "strategy": "single", "profile": "1g.10gb"},
}


@pytest.mark.parametrize("said", DESCRIBED)
@pytest.mark.parametrize("ways", BY_GKE)
def test_gpus_that_gke_itself_shares_are_as_the_settings_describe_them(
    said: str, ways: str
) -> None:
    pool: dict[str, Any] = {"machineType": "a3-highgpu-8g", "nodes": 1, "gpuManagement": "gke"}
    sharing = {"by-gke": DESCRIBED[said]} if DESCRIBED[said] else {}
    described = settings(sharing=sharing, train=pool | ({"sharing": "by-gke"} if sharing else {}))
    found = check_nodes([node("a", "train", BY_GKE[ways])], described)
    assert [(finding.state, f"(such as a) {ways}, and" in finding.text) for finding in found] == (
        [] if said == ways else [("warning", True)]
    )


def test_a_shared_pool_whose_nodes_do_not_choose_the_profile() -> None:
    labels = {
        "gke-no-default-nvidia-gpu-device-plugin": "true",
        "nvidia.com/device-plugin.config": "none",
    }
    (found,) = check_nodes([node("a", "dev", labels)], settings(dev=SHARED))
    assert found.remedy.endswith("gke-nodepool=dev nvidia.com/device-plugin.config=any")


def test_a_taint_that_the_settings_lack_comes_with_the_line_to_write() -> None:
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    (found,) = check_nodes([node("a", "dev", RIGHT["dev"], taint)], settings(dev=SHARED))
    assert (
        "pool dev: nodes have the taint dedicated=ml:NoSchedule, which its settings do not name"
        in found.text
    )
    written = yaml.safe_load(found.remedy.partition("taints: ")[2])
    assert (
        check_nodes(
            [node("a", "dev", RIGHT["dev"], taint)], settings(dev=SHARED | {"taints": written})
        )
        == []
    )


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
