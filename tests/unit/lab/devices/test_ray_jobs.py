"""The simulated Jobs API against what a real Ray answered (ray_jobs.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from berth.lab.devices.ray_jobs import NOT_RUN, RayJobs
from berth.lab.devices.ray_pods import RayNode

RECORDING = json.loads((Path(__file__).parent / "ray_jobs.json").read_text(encoding="utf-8"))
CASES: dict[str, Any] = RECORDING["cases"]
HEAD = RayNode("1", "a-head", ("berth-a", "a"), "10.0.0.9", head=True, ready=True, resources={"CPU": 2.0})

SUBMIT = "POST", "/api/jobs/"
REQUESTS = {
    "no jobs": ("GET", "/api/jobs/", None),
    "submit": (*SUBMIT, {"entrypoint": "echo hello; sleep 300", "submission_id": "one"}),
    "submitted again": (*SUBMIT, {"entrypoint": "echo hello", "submission_id": "one"}),
    "without entrypoint": (*SUBMIT, {"submission_id": "two"}),
    "unknown field": (*SUBMIT, {"entrypoint": "true", "whatever": 1}),
    "entrypoint not text": (*SUBMIT, {"entrypoint": 1}),
    "info of unknown": ("GET", "/api/jobs/none", None),
    "stop unknown": ("POST", "/api/jobs/none/stop", None),
    "logs of unknown": ("GET", "/api/jobs/none/logs", None),
    "stop running": ("POST", "/api/jobs/one/stop", None),
    "stop stopped": ("POST", "/api/jobs/one/stop", None),
    "unknown package": ("GET", "/api/packages/gcs/_ray_pkg_00.zip", None),
    "put package": ("PUT", "/api/packages/gcs/_ray_pkg_00.zip", None),
    "known package": ("GET", "/api/packages/gcs/_ray_pkg_00.zip", None),
}


def ask(jobs: RayJobs, method: str, path: str, body: Any = None) -> web.Response:
    return jobs.dashboard(method, path, json.dumps(body).encode(), [HEAD])


def test_it_is_the_ray_of_the_settings() -> None:
    assert RECORDING["origin"].startswith("Ray 2.60.0 ")


def test_answers_are_as_recorded_in_their_order() -> None:
    jobs = RayJobs()
    for case, request in REQUESTS.items():
        status, recorded, _ = CASES[case]
        answer = ask(jobs, *request)
        assert answer.status == status, case
        if isinstance(recorded, str):
            # Of a traceback, the error, which is the last line with words.
            lines = [line for line in recorded.replace("\\n", "\n").splitlines() if line.strip("'\".")]
            assert (answer.text or "") == "".join(lines[-1:]), case
        else:
            assert json.loads(str(answer.text)) == recorded, case


@pytest.mark.parametrize("case", ["running", "stopped", "gpus that are not there"])
def test_details_are_as_recorded_but_for_the_code_that_was_not_run(case: str) -> None:
    recorded = (CASES[case][1] if case == "gpus that are not there" else CASES[case])[1]
    jobs = RayJobs()
    asked = {"GPU": 1} if case == "gpus that are not there" else {}
    request = {"entrypoint": recorded["entrypoint"], "submission_id": recorded["submission_id"]}
    ask(jobs, *SUBMIT, {**request, **{f"entrypoint_num_{name.lower()}s": count for name, count in asked.items()}})
    if case == "stopped":
        ask(jobs, "POST", "/api/jobs/one/stop")
    found = json.loads(str(ask(jobs, "GET", f"/api/jobs/{recorded['submission_id']}").text))
    assert json.loads(str(ask(jobs, "GET", "/api/jobs/").text)) == [found]
    unknown = {"start_time", "end_time", "driver_agent_http_address", "driver_node_id"}
    if case == "running":
        assert found["message"] == NOT_RUN, "nothing is claimed of its code"
        unknown.add("message")
    assert found.keys() == recorded.keys()
    assert {key for key in found if found[key] != recorded[key]} <= unknown
    assert isinstance(found["start_time"], int)
