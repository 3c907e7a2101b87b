from __future__ import annotations

from typing import Any

import pytest

from lab.devices.gpu_operator import Policy
from lab.devices.observed import Observed
from lab.devices.operand_objects import (
    HASH,
    OWNED,
    label_change,
    mounted,
    plugin_daemonset,
    same_status,
    status,
)

OWNER = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy", "uid": "p"}}


def daemonset(**spec: Any) -> dict[str, Any]:
    return plugin_daemonset(Policy(spec), OWNER, "gpu-operator")


def test_the_plugins_pods_carry_what_the_policy_says() -> None:
    made = daemonset(
        daemonsets={"tolerations": [{"operator": "Exists"}], "rollingUpdate": {"maxUnavailable": "2"}},
        devicePlugin={"repository": "r", "image": "i", "version": "v", "config": {"name": "c", "default": "d"}},
        mig={"strategy": "mixed"},
    )
    template = made["spec"]["template"]["spec"]
    assert template["tolerations"] == [{"operator": "Exists"}]
    assert template["containers"][0]["image"] == "r/i:v"
    assert {"name": "MIG_STRATEGY", "value": "mixed"} in template["containers"][0]["env"]
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 2}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "p"
    assert mounted({"spec": template}) == ("c", "d")


@pytest.mark.parametrize(
    "other",
    [
        {"devicePlugin": {"config": {"name": "other", "default": "d"}}},
        {"devicePlugin": {"config": {"name": "c", "default": "other"}}},
        {"devicePlugin": {"config": {"name": "c", "default": "d"}}, "mig": {"strategy": "mixed"}},
    ],
)
def test_another_config_makes_other_pods(other: dict[str, Any]) -> None:
    first = daemonset(devicePlugin={"config": {"name": "c", "default": "d"}})
    second = daemonset(**other)
    assert first["metadata"]["annotations"][HASH] != second["metadata"]["annotations"][HASH]
    assert first["spec"]["template"] != second["spec"]["template"]


def test_other_components_leave_the_plugins_pods_alone() -> None:
    assert daemonset(dcgmExporter={"enabled": True}) == daemonset(dcgmExporter={"enabled": False})


def test_labels_are_set_and_listed_and_taken_back() -> None:
    first = label_change({"labels": {"other": "1"}}, {"a": "1", "b": "2"})
    assert first == {"labels": {"a": "1", "b": "2"}, "annotations": {OWNED: "a,b"}}
    there = {"labels": {"other": "1", "a": "1", "b": "2"}, "annotations": {OWNED: "a,b"}}
    assert label_change(there, {"a": "1", "b": "2"}) == {}
    assert label_change(there, {"a": "9"}) == {"labels": {"a": "9", "b": None}, "annotations": {OWNED: "a"}}
    assert label_change(there, {}) == {"labels": {"a": None, "b": None}, "annotations": {OWNED: None}}


def test_a_label_that_was_there_stays_when_ours_go() -> None:
    assert label_change({"labels": {"a": "1"}}, {"a": "1"}) == {}


@pytest.mark.parametrize(
    ("problems", "served", "state", "reason"),
    [
        ({}, 2, "ready", "Reconciled"),
        ({}, 0, "ready", "NoGPUNodes"),
        ({"node": "no driver"}, 2, "notReady", "OperandNotReady"),
    ],
)
def test_the_policy_is_ready_when_every_node_is_served(
    problems: dict[str, str], served: int, state: str, reason: str
) -> None:
    found = status("gpu-operator", problems, served, "now")
    assert (found["state"], found["conditions"][0]["reason"]) == (state, reason)
    assert same_status(found, status("gpu-operator", problems, served, "later"))
    assert not same_status(found, status("gpu-operator", {"other": "x"}, served, "now"))


def test_heartbeats_and_others_objects_change_nothing() -> None:
    observed = Observed()
    node: dict[str, Any] = {"metadata": {"uid": "n", "labels": {}}, "status": {"capacity": {"cpu": "4"}}}
    assert observed.changed("Node", node, gone=False)
    beat = node | {"status": node["status"] | {"conditions": [{"lastHeartbeatTime": "now"}]}}
    assert not observed.changed("Node", beat, gone=False)
    assert observed.changed("Node", node | {"status": {"capacity": {"nvidia.com/gpu": "8"}}}, gone=False)
    assert observed.changed("Node", node, gone=True)
    pod = {"metadata": {"uid": "p", "labels": {"app": "other"}}, "spec": {}, "status": {"phase": "Running"}}
    assert not observed.changed("Pod", pod, gone=False)
    policy = {"metadata": {"uid": "c", "generation": 1}}
    assert not observed.knows("c")
    assert observed.changed("ClusterPolicy", policy, gone=False)
    assert not observed.changed("ClusterPolicy", policy | {"status": {"state": "ready"}}, gone=False)
    assert observed.knows("c")
    observed.changed("ClusterPolicy", policy, gone=True)
    assert not observed.knows("c"), "one that comes after it has another uid"
