from __future__ import annotations

from typing import Any

from berth.lab.devices.observed import Observed
from berth.lab.devices.operand_objects import OWNED, label_change


def test_labels_are_set_and_listed_and_taken_back() -> None:
    first = label_change({"labels": {"other": "1"}}, {"a": "1", "b": "2"})
    assert first == {"labels": {"a": "1", "b": "2"}, "annotations": {OWNED: "a,b"}}
    there = {"labels": {"other": "1", "a": "1", "b": "2"}, "annotations": {OWNED: "a,b"}}
    assert label_change(there, {"a": "1", "b": "2"}) == {}
    assert label_change(there, {"a": "9"}) == {"labels": {"a": "9", "b": None}, "annotations": {OWNED: "a"}}
    assert label_change(there, {}) == {"labels": {"a": None, "b": None}, "annotations": {OWNED: None}}


def test_a_label_that_was_there_stays_when_ours_go() -> None:
    assert label_change({"labels": {"a": "1"}}, {"a": "1"}) == {}


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
    daemonset = {"metadata": {"uid": "d", "generation": 1}, "status": {"numberAvailable": 1}}
    assert observed.changed("DaemonSet", daemonset, gone=False)
    assert observed.changed("DaemonSet", daemonset | {"status": {"numberAvailable": 0}}, gone=False)
    policy = {"metadata": {"uid": "c", "generation": 1}}
    assert not observed.knows("c")
    assert observed.changed("ClusterPolicy", policy, gone=False)
    assert not observed.changed("ClusterPolicy", policy | {"status": {"state": "ready"}}, gone=False)
    assert observed.knows("c")
    observed.changed("ClusterPolicy", policy, gone=True)
    assert not observed.knows("c"), "one that comes after it has another uid"
