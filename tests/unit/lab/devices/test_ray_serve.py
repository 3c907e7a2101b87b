"""The simulated Ray Serve against what a real one answered (ray_serve.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from berth.lab.devices.ray_pods import HEAD_RESOURCE, RayNode, ray_node
from berth.lab.devices.ray_serve import APPLICATIONS, NOT_RUN, RayServe

RECORDING = json.loads((Path(__file__).parent / "ray_serve.json").read_text(encoding="utf-8"))
CASES: dict[str, Any] = RECORDING["cases"]

# What only running the application's code would tell: its message says so.
UNKNOWN = {"no such module", "no such attribute", "no such deployment", "bad argument"}

HEAD = RayNode(
    "1", "a-head", ("berth-a", "a"), "10.0.0.9", head=True, ready=True, resources={"CPU": 2.0, HEAD_RESOURCE: 1.0}
)


def put(config: Any, serve: RayServe | None = None) -> tuple[RayServe, int]:
    serve = serve or RayServe()
    body = config if isinstance(config, str) else json.dumps(config)
    return serve, serve.dashboard("PUT", APPLICATIONS, body.encode(), [HEAD]).status


def details(serve: RayServe, *nodes: RayNode) -> dict[str, Any]:
    answer = serve.dashboard("GET", f"{APPLICATIONS}?api_type=declarative", b"", nodes or [HEAD])
    assert answer.status == 200
    return dict(json.loads(str(answer.text)))


def node(uid: str, resources: dict[str, float]) -> RayNode:
    return RayNode(uid, f"a-{uid}", ("berth-a", "a"), f"10.0.0.{uid}", head=uid == "1", ready=True, resources=resources)


def test_it_is_the_ray_of_the_settings() -> None:
    assert RECORDING["origin"].startswith("Ray 2.60.0 ")


@pytest.mark.parametrize("case", [name for name in CASES if "put" in CASES[name]])
def test_what_is_taken_and_refused_is_as_recorded(case: str) -> None:
    assert put(CASES[case]["config"])[1] == CASES[case]["put"][0]


@pytest.mark.parametrize("case", [name for name in CASES if "applications" in CASES[name]])
def test_statuses_are_as_recorded_or_said_to_be_unknown(case: str) -> None:
    recorded = CASES[case]["applications"]
    found = details(put(CASES[case]["config"])[0])["applications"]
    assert found.keys() == recorded.keys()
    for name, application in found.items():
        if case in UNKNOWN:
            assert application["message"] == NOT_RUN, "nothing is claimed of its code"
            continue
        assert application["status"] == recorded[name]["status"]
        assert application["route_prefix"] == recorded[name]["route_prefix"]
        for key, deployment in application["deployments"].items():
            theirs = recorded[name]["deployments"][key]
            for field in ("status", "status_trigger", "target_num_replicas"):
                assert deployment[field] == theirs[field], (key, field)


def test_what_a_replica_needs_is_as_recorded() -> None:
    case = CASES["a GPU that is not there"]
    (application,) = details(put(case["config"])[0])["applications"].values()
    theirs = case["applications"]["a5"]["deployments"]["Painter"]
    assert application["deployments"]["Painter"]["required_resources"] == theirs["required_resources"]
    first, _, _ = theirs["message"].partition(" Resources required")
    assert application["deployments"]["Painter"]["message"].startswith(first)


def test_fields_are_among_those_recorded() -> None:
    case = CASES["scaled to zero"]
    found = details(put(case["config"])[0])
    assert found.keys() <= set(case["get keys"])
    (application,) = found["applications"].values()
    assert application.keys() <= set(case["application keys"])
    assert application["deployments"]["Painter"].keys() <= set(case["deployment keys"])


def test_before_anything_is_deployed() -> None:
    status, recorded = CASES["nothing deployed"]["get"]
    serve = RayServe()
    assert (details(serve), status) == (recorded, 200)
    assert not serve.runs, "nothing listens on port 8000: connection refused"
    status, text = CASES["unknown api type"]["get"]
    answer = serve.dashboard("GET", f"{APPLICATIONS}?api_type=nonsense", b"", [HEAD])
    assert (answer.status, answer.text) == (status, text)


def test_the_proxy_answers_health_and_routes_as_recorded_and_runs_nothing() -> None:
    case = CASES["scaled to zero"]
    serve, _ = put(case["config"])
    for path, key in (("/-/healthz", "healthz"), ("/-/routes", "routes")):
        answer = serve.proxy(path)
        assert [answer.status, answer.text] == case[key]
    assert serve.proxy("/imagine?prompt=x").status == 501
    case = CASES["nothing deployed any more"]
    put(case["config"], serve)
    for path, key in (("/-/healthz", "healthz"), ("/-/routes", "routes")):
        answer = serve.proxy(path)
        assert [answer.status, answer.text] == case[key]


def test_an_application_that_cannot_be_built_never_runs() -> None:
    case = CASES["min above max"]
    serve, _ = put(case["config"])
    (application,) = details(serve)["applications"].values()
    assert application["message"] == case["reason"]
    assert serve.proxy("/-/healthz").status == 503, "no route was ever there (read: proxy_router.py)"


def test_replicas_wait_for_nodes_that_have_room() -> None:
    gpu = {"name": "Painter", "ray_actor_options": {"num_cpus": 2, "num_gpus": 1}, "num_replicas": 2}
    serve, _ = put({"applications": [{"name": "a", "import_path": "a:b", "deployments": [gpu]}]})
    head = node("1", {"CPU": 0.0})
    worker = {"CPU": 6.0, "GPU": 1.0}
    states = [
        details(serve, *nodes)["applications"]["a"]["status"]
        for nodes in (
            [head],
            [head, node("2", worker)],
            [head, node("2", worker), node("3", {"CPU": 6.0})],
            [head, node("2", worker), node("3", worker)],
        )
    ]
    assert states == ["DEPLOYING", "DEPLOYING", "DEPLOYING", "RUNNING"]


def test_a_pod_tells_what_ray_counts_by_its_command() -> None:
    command = "ulimit -n 65536; ray start  --block  --num-cpus=6  --num-gpus=1  --resources='{\"spot\":1}' "
    pod: dict[str, Any] = {
        "metadata": {
            "uid": "1",
            "name": "a-w",
            "namespace": "berth-a",
            "labels": {"ray.io/node-type": "worker", "ray.io/cluster": "a"},
        },
        "spec": {"containers": [{"args": [command]}]},
        "status": {"podIP": "10.0.0.7", "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    found = ray_node(pod)
    assert found is not None
    assert (found.ready, found.head, found.resources) == (True, False, {"CPU": 6.0, "GPU": 1.0, "spot": 1.0})
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert ray_node(pod) is not None
    assert not ray_node(pod).ready  # type: ignore[union-attr]
    pod["metadata"]["labels"] = {}
    assert ray_node(pod) is None
