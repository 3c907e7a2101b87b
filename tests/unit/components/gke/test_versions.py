"""GKE versions: which is older, and what an environment needs."""

from typing import Any

import pytest

from berth.components.gke import needed_features, parse_gke_version, why_too_old
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.cases import table
from tests.unit.loaded import environment_of

BASE: dict[str, Any] = {"project": "berth-lab", "zone": "us-central1-b"}
CPU = {"machineType": "n2-standard-16", "nodes": 1}
TRAIN = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot", "rdma": "managed"}
FLEX = {"machineType": "g2-standard-8", "nodes": {"min": 0, "max": 4}, "capacity": "flex-start"}


def environment(**pools: Any) -> EnvironmentSettings:
    return environment_of("test", BASE | {"pools": {"cpu": CPU} | pools}).settings


@pytest.mark.parametrize(("version", "oldest", "fits"), table(__file__, "versions.yaml"))
def test_which_version_is_older(version: str, oldest: str, *, fits: bool) -> None:
    assert parse_gke_version(version).at_least(parse_gke_version(oldest)) is fits


@pytest.mark.parametrize("text", ["", "1", "latest", "1.34.1.2", "1.34-gke", "1.34.x"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not a GKE version; write for example"):
        parse_gke_version(text)


def test_needs_come_newest_first_with_those_who_need_them() -> None:
    needs = needed_features(environment(train=TRAIN, other=TRAIN, dev=FLEX))
    assert [(need.feature.name, str(need.feature.since), need.who) for need in needs] == [
        ("managed DRANET", "1.34.1-gke.1829001", "pools 'train', 'other'"),
        ("flex-start", "1.32.2-gke.1652000", "pool 'dev'"),
        ("GPUDirect RDMA on A4", "1.32.2-gke.1475000", "pools 'train', 'other'"),
        ("series A4 with its driver R570", "1.32.1-gke.1729000", "pools 'train', 'other'"),
        ("managed DCGM", "1.30.1-gke.1204000", "cluster.managedDcgm"),
    ]
    assert all(need.feature.source.link.startswith("https://") for need in needs)


def test_nothing_is_needed_of_a_cluster_with_nothing_new() -> None:
    assert needed_features(environment()) == []
    assert why_too_old(environment(), "1.28") is None


def test_a_channels_version_is_held_to_the_same_needs() -> None:
    assert why_too_old(environment(dev=FLEX), "1.33.5-gke.1080000") is None
    assert why_too_old(environment(dev=FLEX), "1.31.7-gke.1212000") == (
        "GKE 1.31.7-gke.1212000 is too old: flex-start (pool 'dev') needs 1.32.2-gke.1652000."
        ' Set `cluster.version` to "1.32.2-gke.1652000" or newer.'
    )
