from __future__ import annotations

from typing import Any

import pytest

from berth.lab.devices.autoscaler import (
    Place,
    Room,
    amounts,
    fits,
    growth,
    idle,
    places,
    requests,
    unschedulable,
    why_not,
)

GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


def pod(gpus: int = 8, node: str = "", phase: str = "Pending", name: str = "pod", **spec: Any) -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": "500m", GPU: str(gpus)}}}
    spec = {"containers": [container], "tolerations": [TOLERATION], "nodeName": node} | spec
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": [condition]}}


def place(rooms: list[Room] | None = None, **labels: str) -> Place:
    free = amounts({"cpu": "223370m", GPU: "8", "pods": "110"})
    return Place("pool", labels, [TAINT], free, "zone", rooms if rooms is not None else [Room(4)])


def affinity(**expression: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_a_pod_takes_its_containers_and_the_largest_of_its_first_ones() -> None:
    large = {"resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}
    found = requests(pod(8, initContainers=[large, large], overhead={"cpu": "1"}))
    assert found == amounts({"cpu": "5", "memory": "1Gi", GPU: "8", "pods": "1"})


@pytest.mark.parametrize(
    ("spec", "fitting"),
    [
        ({}, True),
        ({"gpus": 9}, False),
        ({"tolerations": []}, False),
        ({"tolerations": [{"operator": "Exists"}]}, True),
        ({"tolerations": [{"key": GPU, "value": "other"}]}, False),
        ({"tolerations": [{"key": GPU, "value": "present"}]}, True),
        ({"nodeSelector": {"kind": "flex"}}, True),
        ({"nodeSelector": {"kind": "other"}}, False),
        ({"affinity": affinity(key="kind", operator="In", values=["flex"])}, True),
        ({"affinity": affinity(key="kind", operator="NotIn", values=["flex"])}, False),
        ({"affinity": affinity(key="other", operator="Exists")}, False),
        ({"affinity": affinity(key="other", operator="DoesNotExist")}, True),
        ({"affinity": affinity(key="count", operator="Gt", values=["4"])}, True),
        ({"affinity": affinity(key="count", operator="Lt", values=["4"])}, False),
    ],
)
def test_a_pod_fits_where_the_scheduler_would_put_it(spec: dict[str, Any], *, fitting: bool) -> None:
    assert fits(pod(**spec), place(kind="flex", count="8")) is fitting


@pytest.mark.parametrize(
    ("gpus", "room", "added"),
    [([8], 4, 1), ([8, 8, 8], 4, 3), ([4, 4, 4], 4, 2), ([8, 8, 8], 2, 2), ([16], 4, 0), ([8], 0, 0)],
)
def test_as_many_nodes_are_added_as_the_pods_need_and_the_pool_may_have(gpus: list[int], room: int, added: int) -> None:
    found = growth([pod(count) for count in gpus], [], [place([Room(room)])])
    assert found.added == ({("pool", "zone"): added} if added else {})


def test_nothing_is_added_for_a_pod_that_fits_a_node_by_now() -> None:
    found = growth([pod()], [place()], [place()])
    assert (found.added, found.awaited) == ({}, {"pool"})
    assert growth([pod(), pod()], [place()], [place()]).added == {("pool", "zone"): 1}


def test_who_a_node_comes_for_and_whom_none_would_help() -> None:
    first, second, large = pod(name="first"), pod(name="second"), pod(16, name="large")
    found = growth([first, large, second], [], [place([Room(4)])])
    assert found.triggers == {("pool", "zone"): [first, second]}
    assert found.unplaced == [large]


@pytest.mark.parametrize(
    ("spec", "rooms", "reason"),
    [
        ({}, [Room(1)], ""),
        ({}, [Room(0)], "max node group size reached"),
        ({"gpus": 16}, [Room(1)], "Insufficient nvidia.com/gpu"),
        ({"nodeSelector": {"kind": "other"}}, [Room(1)], "node(s) didn't match Pod's node affinity/selector"),
        ({"tolerations": []}, [Room(1)], "node(s) had untolerated taint {nvidia.com/gpu: present}"),
    ],
)
def test_why_a_further_node_would_not_help(spec: dict[str, Any], rooms: list[Room], reason: str) -> None:
    assert why_not(pod(**spec), place(rooms, kind="flex")) == reason


def test_zones_of_one_pool_share_its_limit() -> None:
    together = Room(2)
    first, second = place([together]), place([together])
    assert sum(growth([pod(), pod(), pod()], [], [first, second]).added.values()) == 2


def test_what_runs_on_a_node_is_not_free_and_what_ended_is() -> None:
    node = {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "4", GPU: "8", "pods": "10"}}}
    running, done = pod(6, "n", "Running"), pod(2, "n", "Succeeded")
    assert places([node], [running, done])[0].free[GPU] == 2
    assert places([node | {"spec": {"unschedulable": True}}], []) == []


def test_only_pods_that_the_scheduler_gave_up_on_count() -> None:
    assert unschedulable(pod())
    assert not unschedulable(pod(node="n"))
    assert unschedulable(pod(resourceClaims=[{"name": "nic"}]))
    assert not unschedulable({"metadata": {}, "spec": {}, "status": {}})


def test_a_node_with_daemons_and_ended_pods_is_idle() -> None:
    daemon = pod(0, "daemon", "Running")
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet"}]
    pods = [daemon, pod(8, "ended", "Failed"), pod(8, "busy", "Running")]
    assert idle(["daemon", "ended", "busy", "empty"], pods) == {"daemon", "ended", "empty"}
