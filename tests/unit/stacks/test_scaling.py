"""Warnings about pools that GKE's cluster autoscaler grows in some states only; none about pools
that always grow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.sharing import scaling
from berth.lab.home import CLONE
from berth.stacks.load.stack import load
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.stacks.test_refused import RDMA_POOL, over, warnings

RENAMED = {"any": {"kind": "time-slicing", "replicas": 4, "renameByDefault": True}}
SLICED = {"any": {"kind": "time-slicing", "replicas": 4}}
L4 = {"machineType": "g2-standard-24", "sharing": "any"}
A4 = {"machineType": "a4-highgpu-8g", "capacity": "spot"}
CUT = {"cut": {"kind": "mig", "strategy": "single", "profile": "1g.23gb"}}

WELL: dict[str, dict[str, Any]] = {
    "whole GPUs of GKE from zero nodes": {
        "pools": {"dev": {"machineType": "g2-standard-48", "nodes": {"min": 0, "max": 4}}}
    },
    "shares that keep the name of GPUs": {"sharing": SLICED, "pools": {"dev": L4 | {"nodes": {"min": 0, "max": 4}}}},
    "as many shares of one pod as a new node has GPUs": {
        "sharing": SLICED,
        "pools": {"dev": L4 | {"nodes": {"min": 0, "max": 4}}},
        "engineers": {"alice": {"worker": {"gpus": 2}, "wait": {"until": "submitted"}}},
    },
    "more shares where a node is there": {
        "sharing": SLICED,
        "pools": {"dev": L4 | {"nodes": {"min": 1, "max": 4}}},
        "engineers": {"alice": {"worker": {"gpus": 3}}},
    },
    "a fixed number of nodes with renamed shares": {"sharing": RENAMED, "pools": {"dev": L4 | {"nodes": 2}}},
    "bounds that leave no choice": {"sharing": RENAMED, "pools": {"dev": L4 | {"nodes": {"min": 2, "max": 2}}}},
    "RDMA networks beside a node": {"pools": {"train": RDMA_POOL | {"nodes": {"min": 1, "max": 4}}}},
    "GPUs that pods claim from zero nodes, without NICs": {
        "pools": {"train": A4 | {"nodes": {"min": 0, "max": 4}, "gpuAllocation": "dra"}}
    },
    "few renamed shares beside an autoscaled pool": {
        "sharing": RENAMED,
        "pools": {
            "dev": L4 | {"nodes": 3},
            "batch": {"machineType": "g2-standard-8", "nodes": {"min": 0, "max": 2}},
        },
    },
}


@pytest.mark.parametrize("case", WELL)
def test_pools_that_scale_are_accepted_without_a_warning(case: str) -> None:
    assert warnings(WELL[case]) == []


def test_managed_nics_from_zero_nodes_are_warned_of() -> None:
    given = {"pools": {"train": RDMA_POOL | {"rdma": "managed", "nodes": {"min": 0, "max": 4}}}}
    (warning,) = warnings(given)
    assert warning == (
        "environment.pools.train.nodes: nothing says that GKE's cluster autoscaler knows which RDMA "
        "NICs a node has that is not there"
        " yet: while the pool has no node, it may never add one for pods that claim NICs; write "
        "nodes: {min: 1, max: 4}, or a number"
        " of nodes"
    )
    flex = over(given, {"pools": {"train": {"capacity": "flex-start"}}})
    assert warnings(flex)[0].endswith(
        "take machines that can stay (a reservation or spot) with one node or more, or write `rdma: none`"
    )


def test_nics_of_queued_flex_start_nodes_are_warned_of() -> None:
    queued = {"kind": "flex-start", "queued": True}
    (warning,) = warnings({"pools": {"train": RDMA_POOL | {"nodes": {"min": 0, "max": 4}, "capacity": queued}}})
    assert "it may never add one for pods that claim NICs" in warning


@pytest.mark.parametrize("least", [0, 1])
def test_mig_on_nodes_that_come_with_the_work_is_warned_of(least: int) -> None:
    given = {"sharing": CUT, "pools": {"dev": A4 | {"nodes": {"min": least, "max": 2}, "sharing": "cut"}}}
    assert warnings(given) == [
        (
            "environment.pools.dev.nodes: the GPUs of a new node are cut only after it has joined"
            " (https://github.com/NVIDIA/gpu-operator/issues/2670): pods that it was added for may "
            "start on a whole GPU, or find none"
            " until somebody sets the label nvidia.com/mig.config again; write a number of nodes"
        )
    ]
    assert warnings(over(given, {"pools": {"dev": {"nodes": 2}}})) == []


def test_renamed_shares_that_stop_the_autoscaling_of_other_pools_are_warned_of() -> None:
    batch = {"machineType": "g2-standard-8", "nodes": {"min": 0, "max": 2}}
    given = {"sharing": RENAMED, "pools": {"dev": L4 | {"nodes": 4}, "batch": batch}}
    assert warnings(given) == [
        (
            "environment.pools.dev.sharing: GKE's cluster autoscaler knows GPUs as nvidia.com/gpu "
            "only, and takes the 4 nodes that"
            " advertise another resource (dev) for broken ones; it stops for all pools (batch) where "
            "more than 3 nodes and 45 % of all"
            " are broken: have fewer such nodes, or let them advertise nvidia.com/gpu"
        )
    ]
    # 4 of 9 nodes are 44 %.
    assert warnings(over(given, {"pools": {"cpu": {"nodes": 5}}})) == []
    assert warnings(over(given, {"pools": {"batch": {"nodes": 2}}})) == []


def test_an_existing_clusters_autoscaler_is_warned_of() -> None:
    existing = {"project": None, "zone": None, "cluster": {"existing": {"kubeconfig": "~/.kube/config"}}}
    pools = {"dev": L4 | {"nodes": {"min": 1, "max": 4}}}
    found = warnings(existing | {"sharing": RENAMED, "pools": pools})
    assert any("nodes of this pool advertise nvidia.com/gpu.shared" in warning for warning in found)


SHIPPED = sorted([*(CLONE / "stacks").glob("Pulumi.*.yaml"), *(CLONE / "stacks" / "gallery").glob("Pulumi.*.yaml")])


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_shipped_environments_have_pools_that_scale(file: Path) -> None:
    config = yaml.safe_load(file.read_text(encoding="utf-8"))["config"]
    if "berth:environment" not in config:
        pytest.skip("the stack of an engineer has no pools")
    settings = load("shipped", {"environment": config["berth:environment"]}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    assert [*scaling.problems(settings), *scaling.warnings(settings)] == []
