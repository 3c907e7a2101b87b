"""Conditions under which the stand-in takes an object for ready."""

from __future__ import annotations

from typing import Any

from berth.lab.plugins.kubernetes.waiting import daemon_set, deployment, resource_quota, unmet


def test_a_deployment_is_ready_when_rolled_out() -> None:
    state: dict[str, Any] = {
        "metadata": {"generation": 2},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1},
    }
    assert "(1/2 Pods available)" in deployment(state)
    state["status"]["availableReplicas"] = 2
    assert deployment(state) == ""
    state["status"]["observedGeneration"] = 1
    assert deployment(state)


def test_a_daemon_set_is_ready_when_every_node_has_the_new_pod() -> None:
    assert daemon_set({"metadata": {"generation": 1}}), "the controller has not seen it yet"
    counts = {"observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}
    assert "(1/2 available)" in daemon_set({"metadata": {"generation": 1}, "status": counts})
    assert daemon_set({"metadata": {"generation": 1}, "status": counts | {"numberAvailable": 2}}) == ""


def test_a_quota_is_ready_when_the_controller_counts_what_it_limits() -> None:
    assert resource_quota({"spec": {"hard": {"pods": "2"}}, "status": {}})
    assert resource_quota({"spec": {"hard": {"pods": "2"}}, "status": {"hard": {"pods": "1"}}})
    assert not resource_quota({"spec": {"hard": {"pods": "2"}}, "status": {"hard": {"pods": "2"}}})


def test_messages_of_conditions_that_are_not_true() -> None:
    conditions = [
        {"type": "A", "status": "True", "reason": "Fine", "message": "all well"},
        {"type": "B", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"},
    ]
    assert unmet({"status": {"conditions": conditions}}) == ["[Unschedulable] 0/3 nodes"]
