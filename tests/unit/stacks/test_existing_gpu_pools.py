"""GPU pools of an existing cluster: berth does not label their nodes, but warns, and names the
command that does.
"""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from berth.components.sharing import serving_labels
from berth.stacks.load.stack import load
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import resolve_environment

EXISTING = {"existing": {"kubeconfig": "~/.kube/config"}}
A4 = {"machineType": "a4-highgpu-8g", "nodes": 1}
PROFILES = {
    "any": {"kind": "time-slicing", "replicas": 4},
    "cut": {"kind": "mig", "strategy": "single", "profile": "1g.23gb"},
}


def resolved(pools: dict[str, Any], cluster: dict[str, Any] | None = None) -> tuple[EnvironmentSettings, list[str]]:
    place = {"project": "berth-lab", "zone": "us-central1-b"} if cluster is None else {"cluster": cluster}
    cpu = {"machineType": "n2-standard-16", "nodes": 1}
    given = {**place, "sharing": PROFILES, "pools": {"cpu": cpu, **pools}}
    settings = load("test", {"environment": given}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    found = [f"{warning.where}: {warning.message}" for warning in resolve_environment(settings).warnings]
    return settings, [text for text in found if "label" in text]


def warnings(pools: dict[str, Any], cluster: dict[str, Any] | None = None) -> list[str]:
    return resolved(pools, cluster)[1]


def test_pools_that_the_operator_must_not_serve_are_warned_of_with_the_command() -> None:
    _, cluster = warnings({"dev": A4 | {"sharing": "any"}, "train": A4}, EXISTING)
    assert cluster == (
        "environment.pools.train: berth labels no nodes of an existing cluster: where they lack "
        "these labels, the GPU Operator, which"
        " takes every node with an NVIDIA device, runs a second device plugin beside GKE's; run: "
        "kubectl label nodes --overwrite"
        " --selector=cloud.google.com/gke-nodepool=train nvidia.com/gpu.deploy.operands=false, and "
        "give the node pool the same labels"
        " for nodes that come later"
    )


@pytest.mark.parametrize(
    ("pool", "consequence"),
    [
        (A4 | {"sharing": "any"}, "GKE's own device plugin runs beside the GPU Operator's, which there has whole GPUs"),
        (A4 | {"sharing": "cut"}, "GKE's own device plugin runs beside the GPU Operator's, which there has whole GPUs"),
        (A4 | {"gpuManagement": "operator"}, "GKE's own device plugin runs beside the GPU Operator's; run"),
        (A4 | {"gpuAllocation": "dra"}, "a device plugin hands out the same GPUs as claims do, each to two pods"),
    ],
)
def test_the_command_sets_what_berth_puts_into_the_pools_that_it_makes(pool: dict[str, Any], consequence: str) -> None:
    (warning,) = warnings({"dev": pool}, EXISTING)
    assert consequence in warning
    command = warning.partition("; run: ")[2].partition(", and give")[0]
    pool_offered = resolve_environment(resolved({"dev": pool})[0]).pools["dev"]
    *words, _selector = shlex.split(command)[:5]
    assert words == ["kubectl", "label", "nodes", "--overwrite"]
    assert dict(label.split("=", 1) for label in shlex.split(command)[5:]) == serving_labels(pool_offered)


def test_nothing_is_warned_of_where_berth_sets_the_labels_or_no_operator_is_there() -> None:
    fleet = {"dev": A4 | {"sharing": "any"}, "train": A4}
    assert warnings(fleet) == []
    assert warnings({"train": A4}, EXISTING) == []
