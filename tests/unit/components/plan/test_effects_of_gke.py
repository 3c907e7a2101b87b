"""Effects of changes of node pools and clusters on running workloads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.components.plan.plans import (
    CLUSTER,
    POOL,
    RAY,
    Inputs,
    edited,
    effects,
    event,
    pool,
    ray,
    report,
    same,
    texts_of,
    who,
)

ALICE = ray("alice")
OTHERS = [edited(ray("zoe"), metadata__labels={"berth/engineer": "zoe", "berth/stack": "zoe"})]
UPGRADE = {"upgradeSettings": {"maxSurge": 0, "maxUnavailable": 1}}


def pool_changes(old: Inputs, new: Inputs, *, live: list[Inputs] | None = None) -> list[Any]:
    return effects(event("update", POOL, "train", old, new), same(RAY, "alice", ALICE), live=live)


# Node pools


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodeConfig__machineType": "a3-ultragpu-8g"}, "the machine type"),
        ({"nodeConfig__diskType": "hyperdisk-ml"}, "the type of the boot disk"),
        ({"nodeConfig__diskSizeGb": 500}, "the size of the boot disk"),
        ({"nodeConfig__imageType": "UBUNTU_CONTAINERD"}, "the node image"),
        ({"nodeConfig__linuxNodeConfig": {"sysctls": {"net.core.rmem_max": "1"}}}, "kernel settings"),
        ({"nodeConfig__kubeletConfig": {"cpuManagerPolicy": "static"}}, "the kubelet's settings"),
        ({"nodeConfig__workloadMetadataConfig": {"mode": "GCE_METADATA"}}, "the metadata server (Workload Identity)"),
        ({"version": "1.36.4-gke.1"}, "the nodes' version"),
    ],
)
def test_edits_that_make_every_node_anew(change: dict[str, Any], words: str) -> None:
    old = pool() | UPGRADE
    found = pool_changes(old, edited(old, **change))
    text = (
        f"pool train: for a change of {words} GKE recreates every node, 1 at a time without spare ones, "
        "and evicts the pods on it"
    )
    assert texts_of(found) == [("destroys", text)]
    assert who(found) == [["berth alice (2 pods, 16 GPUs)"]]
    assert [(away.gpus, away.back) for away in found[0].gpus_away] == [((8, 8), True)]


@pytest.mark.parametrize(
    "change",
    [
        {"nodeConfig__labels": {"team": "vision"}},
        {"nodeConfig__tags": ["x"]},
        {"nodeConfig__taints": [{"key": "a", "value": "b", "effect": "NO_SCHEDULE"}]},
        {"management": {"autoRepair": False}},
        {"upgradeSettings": {"maxSurge": 1}},
    ],
)
def test_edits_that_no_node_notices(change: dict[str, Any]) -> None:
    assert pool_changes(pool(), edited(pool(), **change)) == []


def test_nodes_made_anew_with_spare_ones_take_no_gpus_away() -> None:
    (found,) = pool_changes(pool(), edited(pool(), nodeConfig__diskSizeGb=500))
    assert "1 at a time with 1 spare node" in found.text
    assert found.gpus_away == []


def test_nodes_made_anew_where_nobody_is_disturb_only() -> None:
    (found,) = effects(event("update", POOL, "train", pool(), edited(pool(), nodeConfig__diskSizeGb=500)))
    assert found.level.word == "disturbs"


def test_where_the_cluster_could_not_be_asked_somebody_may_be_there() -> None:
    step = event("update", POOL, "train", pool(), edited(pool(), nodeConfig__diskSizeGb=500) | UPGRADE)
    assert report(step).level.word == "disturbs"
    unasked = report(step, asked=False, not_asked="no answer")
    assert (unasked.level.word, unasked.partly_asked) == ("destroys", "no answer")


def test_an_empty_pool_has_no_nodes_to_make_anew() -> None:
    empty = edited(pool(), nodeCount=0)
    assert effects(event("update", POOL, "train", empty, edited(empty, nodeConfig__diskSizeGb=500))) == []


def test_fewer_nodes() -> None:
    found = pool_changes(pool(), edited(pool(), nodeCount=1), live=OTHERS)
    text = "pool train: 2 nodes become 1; GKE deletes 1 node of its own choice, and evicts the pods there"
    assert texts_of(found) == [("destroys", text)]
    assert who(found) == [["berth alice (2 pods, 16 GPUs)", "berth zoe (2 pods, 16 GPUs)"]]
    assert [(away.gpus, away.back) for away in found[0].gpus_away] == [((8, 8), False)]


def test_fewer_nodes_where_nobody_is() -> None:
    (found,) = effects(event("update", POOL, "train", pool(), edited(pool(), nodeCount=1)))
    assert found.level.word == "disturbs"
    assert found.gpus_away[0].gpus == (8, 8)


def test_more_nodes_are_harmless() -> None:
    assert texts_of(pool_changes(pool(), edited(pool(), nodeCount=3))) == [
        ("harmless", "pool train: 2 nodes become 3"),
    ]


def test_a_lower_bound_of_the_autoscaler_is_not_enforced() -> None:
    old = edited(pool(), nodeCount=None) | {"autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 4}}
    new = edited(old, autoscaling__totalMaxNodeCount=3)
    (found,) = pool_changes(old, new)
    assert (found.level.word, found.text) == (
        "disturbs",
        "pool train: 0–4 nodes become 0–3; nodes beyond that stay until they are idle",
    )
    assert found.gpus_away[0].gpus == (0, 8)


def test_nodes_count_for_each_zone() -> None:
    old = pool() | {"nodeLocations": ["us-central1-b", "us-central1-c"]}
    (found,) = pool_changes(old, edited(old, nodeLocations=["us-central1-b"]))
    assert (
        found.text == "pool train: 4 nodes become 2; GKE deletes the nodes in us-central1-c, and evicts the pods there"
    )
    assert found.gpus_away[0].gpus == (16, 16)


def test_another_mig_layout_stops_the_pods() -> None:
    old = pool(labels={"nvidia.com/mig.config": "all-1g.23gb"})
    found = pool_changes(old, pool(labels={"nvidia.com/mig.config": "all-2g.45gb"}))
    assert [effect.level.word for effect in found] == ["destroys"]
    assert "the MIG layout changes from all-1g.23gb to all-2g.45gb" in found[0].text
    assert "nobody" not in found[0].text


def test_another_sharing_profile_disturbs() -> None:
    old = pool(labels={"nvidia.com/device-plugin.config": "any"})
    (found,) = pool_changes(old, pool(labels={"nvidia.com/device-plugin.config": "mps"}))
    assert found.level.word == "disturbs"
    assert "the sharing profile changes from any to mps; the device plugin restarts on its nodes" in found.text


def test_a_taint_with_no_execute_ends_pods() -> None:
    new = edited(pool(), nodeConfig__taints=[{"key": "maintenance", "effect": "NO_EXECUTE"}])
    assert texts_of(pool_changes(pool(), new)) == [
        ("destroys", "pool train: taint maintenance (NoExecute) ends the pods that do not tolerate it")
    ]


def test_a_pool_that_goes_takes_capacity_even_where_nobody_is() -> None:
    (found,) = effects(event("delete", POOL, "train", pool(), None))
    assert (found.level.word, found.text) == ("destroys", "pool train: all its nodes are deleted")
    assert [(away.gpus, away.back) for away in found.gpus_away] == [((16, 16), False)]


def test_a_replaced_pool_comes_back_if_there_is_capacity() -> None:
    steps = [
        event("delete-replaced", POOL, "train", pool(), None),
        event("replace", POOL, "train", pool(), pool(), keys=["nodeConfig"]),
    ]
    (found,) = effects(*steps, same(RAY, "alice", ALICE), live=OTHERS)
    assert (
        found.text == "pool train: all its nodes are deleted, then new ones are created, if there is capacity for them"
    )
    assert who([found]) == [["berth alice (2 pods, 16 GPUs)", "berth zoe (2 pods, 16 GPUs)"]]
    assert found.gpus_away[0].back


def test_a_replacement_that_is_made_first() -> None:
    (found,) = effects(event("replace", POOL, "train", pool(), pool(), keys=["nodeConfig"]))
    assert (
        found.text == "pool train: new nodes are created, if there is capacity for them, then all old ones are deleted"
    )


def test_a_pool_replaced_by_other_gpus_gives_the_old_ones_up() -> None:
    new = edited(pool(), nodeConfig__machineType="a3-ultragpu-8g")
    (found,) = effects(event("replace", POOL, "train", pool(), new))
    assert not found.gpus_away[0].back


# The GKE cluster


def cluster_changes(location: str = "us-central1-b", **change: Any) -> list[Any]:
    old = {"location": location, "deletionProtection": True}
    step = event("update", CLUSTER, "prod", old, old | change, old_outputs={"masterVersion": "1.34.1-gke.1829001"})
    return effects(step, same(POOL, "train", pool()), same(RAY, "alice", ALICE))


def test_the_control_plane_of_a_zonal_cluster_is_away_while_it_is_upgraded() -> None:
    ((level, text),) = texts_of(cluster_changes(minMasterVersion="1.35"))
    assert level == "disturbs"
    assert text.startswith(
        "the control plane is upgraded from 1.34.1-gke.1829001 to 1.35 or newer; the API server is away"
    )


def test_that_of_a_regional_cluster_stays() -> None:
    ((_, text),) = texts_of(cluster_changes("us-central1", minMasterVersion="1.35"))
    assert "the API server stays, since the cluster is regional" in text


def test_a_minimum_that_the_control_plane_has_is_no_upgrade() -> None:
    assert cluster_changes(minMasterVersion="1.34") == []


def test_deletion_protection_that_is_switched_off_is_told() -> None:
    ((level, text),) = texts_of(cluster_changes(deletionProtection=False))
    assert (level, "deletion protection is switched off" in text) == ("disturbs", True)


def test_cluster_settings_that_make_all_nodes_anew() -> None:
    found = cluster_changes(enableIntranodeVisibility=True)
    assert texts_of(found)[0][0] == "destroys"
    assert who(found) == [["berth alice (2 pods, 16 GPUs)"]]


def test_labels_and_logs_of_the_cluster_are_harmless() -> None:
    assert cluster_changes(resourceLabels={"a": "b"}, loggingConfig={"enableComponents": []}) == []


def test_a_setting_that_berth_says_nothing_of_may_disturb() -> None:
    ((level, text),) = texts_of(cluster_changes(deletionPolicy="ABANDON"))
    assert (level, text) == (
        "disturbs",
        "deletionPolicy changes in place; berth does not know the effect on what runs",
    )


def test_a_replaced_cluster_takes_all_pools_and_berths() -> None:
    found = effects(
        event("replace", CLUSTER, "prod", {"location": "us-central1-b"}, {"location": "us-central1-c"}),
        same(POOL, "train", pool()),
        same(RAY, "alice", ALICE),
    )
    assert texts_of(found) == [("destroys", "the cluster is deleted with everything on it, then recreated, empty")]
    assert found[0].gpus_away[0].gpus == (16, 16)
    assert who(found) == [["berth alice (2 pods, 16 GPUs)"]]


def test_a_protected_cluster_is_not_replaced_until_it_is_free() -> None:
    old = {"location": "us-central1-b", "deletionProtection": True}
    (found,) = effects(event("replace", CLUSTER, "prod", old, old | {"location": "us-central1-c"}))
    assert found.text.endswith(
        "; deletion protection refuses that until `deletionProtection: false` is brought up first"
    )
