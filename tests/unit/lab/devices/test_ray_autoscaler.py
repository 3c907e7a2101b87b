"""Workers of a simulated Ray cluster, by what replicas of Ray Serve ask."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from berth.lab.devices.ray_autoscaler import operations
from berth.lab.devices.ray_pods import HEAD_RESOURCE, RayNode
from berth.lab.devices.ray_serve import APPLICATIONS, Load, RayServe, Room

GPU = {"CPU": 4, "GPU": 1}


def group(replicas: int = 0, least: int = 0, most: int = 2, **more: Any) -> dict[str, Any]:
    container = {"resources": {"limits": {"cpu": "6", "memory": "24Gi", "nvidia.com/gpu": "1"}}}
    return {
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
    return RayNode(name, name, ("berth-a", "a"), "10.0.0.2", head=False, ready=ready, resources=resources)


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
    found = operations(group(replicas), [], waiting(*demand), set())
    path = "/spec/workerGroupSpecs/0/replicas"
    assert found == ([{"op": "replace", "path": path, "value": expected}] if expected else [])


def test_idle_workers_are_named_and_never_below_the_minimum() -> None:
    there = [worker("w1"), worker("w2")]
    found = operations(group(2, least=1), there, waiting(), {"w1", "w2"})
    assert [(each["path"].rpartition("/")[2], each["value"]) for each in found] == [
        ("replicas", 1),
        ("scaleStrategy", {"workersToDelete": ["w1"]}),
    ]
    assert operations(group(2, least=2), there, waiting(), {"w1", "w2"}) == []
    assert operations(group(2), there, waiting({"GPU": 9}), {"w1"}) == [], "not while something waits"


def test_names_of_workers_that_are_gone_are_taken_out() -> None:
    deleting = group(scaleStrategy={"workersToDelete": ["w1"]})
    assert operations(deleting, [worker("w1", ready=False)], waiting(), set()) == []
    (found,) = operations(deleting, [], waiting(), set())
    assert found["value"] == {"workersToDelete": []}


def test_a_group_counts_what_its_parameters_say() -> None:
    shared = group(rayStartParams={"num-gpus": "2", "resources": "'{\"spot\": 1}'"})
    (found,) = operations(shared, [], waiting({"GPU": 2, "spot": 1}), set())
    assert found["value"] == 1


def test_a_deployment_of_no_replicas_asks_for_one_while_somebody_has_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    scaling = {"min_replicas": 0, "max_replicas": 1, "downscale_delay_s": 30}
    painter = {"name": "Painter", "ray_actor_options": {"num_cpus": 4, "num_gpus": 1}, "autoscaling_config": scaling}
    config = {"applications": [{"name": "a", "import_path": "a:b", "deployments": [painter]}]}
    head = RayNode("1", "a-head", ("berth-a", "a"), "10.0.0.9", head=True, ready=True, resources={HEAD_RESOURCE: 1.0})
    serve = RayServe()
    serve.dashboard("PUT", APPLICATIONS, json.dumps(config).encode(), [head])
    assert serve.load([head]).waiting == []
    assert serve.proxy("/-/healthz").status == 200
    assert serve.load([head]).waiting == [], "a probe is no request"
    now = 1000.0
    monkeypatch.setattr("berth.lab.devices.ray_serve.time.monotonic", lambda: now)
    assert serve.proxy("/imagine?prompt=x").status == 501
    assert serve.load([head]).waiting == [GPU]
    answer = serve.dashboard("GET", APPLICATIONS, b"", [head])
    application = json.loads(answer.text)["applications"]["a"]
    states = (application["status"], application["deployments"]["Painter"]["status"])
    assert states == ("RUNNING", "UPSCALING"), "it runs while it scales, as Ray's does"
    load = serve.load([head, worker("w1")])
    assert (load.waiting, [room.used for room in load.rooms]) == ([], [False, True])
    assert load.rooms[1].free == Counter({"CPU": 2.0, "GPU": 0.0})
    now += 31
    assert serve.load([head]).waiting == []
