"""Workers of a simulated Ray cluster, by what replicas of Ray Serve ask."""

from __future__ import annotations

from typing import Any

import pytest

from berth.lab.devices.ray_autoscaler import operations
from berth.lab.devices.ray_pods import RayNode
from berth.lab.devices.ray_serve import Load, Room

GPU: dict[str, float] = {"CPU": 4, "GPU": 1}


def group(replicas: int = 0, least: int = 0, most: int = 2, **more: Any) -> dict[str, Any]:
    container = {"resources": {"limits": {"cpu": "6", "memory": "24Gi", "nvidia.com/gpu": "1"}}}
    return {
        "groupName": "workers",
        "replicas": replicas,
        "minReplicas": least,
        "maxReplicas": most,
        "rayStartParams": {},
        "scaleStrategy": {},
        "template": {"spec": {"containers": [container]}},
        **more,
    }


def worker(name: str, *, ready: bool = True) -> RayNode:
    resources = {"CPU": 6.0, "GPU": 1.0}
    return RayNode(
        name, name, ("berth-a", "a"), "10.0.0.2", head=False, ready=ready, resources=resources, group="workers"
    )


def waiting(*needs: dict[str, float], rooms: tuple[Room, ...] = ()) -> Load:
    return Load(list(rooms), list(needs))


@pytest.mark.parametrize(
    ("demand", "replicas", "expected"),
    [
        ([], 0, None),
        ([GPU], 0, 1),
        ([GPU, GPU], 0, 2),
        ([{"CPU": 3}, {"CPU": 3}], 0, 1),
        ([GPU, GPU, GPU], 0, 2),
        ([GPU], 1, None),
        ([{"GPU": 2}], 0, None),
    ],
    ids=["nothing", "one", "two", "two on one", "no more than max", "one is coming", "none would do"],
)
def test_as_many_workers_as_replicas_need(demand: list[Any], replicas: int, expected: int | None) -> None:
    found = operations([group(replicas)], [], waiting(*demand), {})
    path = "/spec/workerGroupSpecs/0/replicas"
    assert found == ([{"op": "replace", "path": path, "value": expected}] if expected else [])


def test_idle_workers_are_named_and_never_below_the_minimum() -> None:
    there = [worker("w1"), worker("w2")]
    found = operations([group(2, least=1)], there, waiting(), {"workers": {"w1", "w2"}})
    assert [(change["path"].rpartition("/")[2], change["value"]) for change in found] == [
        ("replicas", 1),
        ("scaleStrategy", {"workersToDelete": ["w1"]}),
    ]
    assert operations([group(2, least=2)], there, waiting(), {"workers": {"w1", "w2"}}) == []
    assert operations([group(2)], there, waiting({"GPU": 9}), {"workers": {"w1"}}) == [], "not while something waits"


def test_names_of_workers_that_are_gone_are_taken_out() -> None:
    deleting = group(scaleStrategy={"workersToDelete": ["w1"]})
    assert operations([deleting], [worker("w1", ready=False)], waiting(), {}) == []
    (found,) = operations([deleting], [], waiting(), {})
    assert found["value"] == {"workersToDelete": []}


def cpu_group(**more: Any) -> dict[str, Any]:
    container = {"resources": {"limits": {"cpu": "6", "memory": "24Gi"}}}
    return group(groupName="cpu", template={"spec": {"containers": [container]}}, **more)


def numbers(changes: list[dict[str, Any]]) -> dict[str, Any]:
    return {change["path"].removeprefix("/spec/workerGroupSpecs/"): change["value"] for change in changes}


def test_a_group_grows_for_what_fits_it_and_one_with_gpus_last() -> None:
    groups = [group(), cpu_group()]
    assert numbers(operations(groups, [], waiting(GPU), {})) == {"0/replicas": 1}
    assert numbers(operations(groups, [], waiting({"CPU": 3.0}), {})) == {"1/replicas": 1}
    full = [group(), cpu_group(most=0)]
    assert numbers(operations(full, [], waiting({"CPU": 3.0}), {})) == {"0/replicas": 1}


def test_workers_above_a_lowered_maximum_go_and_no_others() -> None:
    """Idle ones go first; workers of other groups stay."""
    there = [worker("w1"), worker("w2")]
    found = operations([group(2, most=1), cpu_group()], there, waiting({"GPU": 9}), {"workers": {"w2"}})
    assert numbers(found) == {"0/replicas": 2, "0/scaleStrategy": {"workersToDelete": ["w2"]}}
