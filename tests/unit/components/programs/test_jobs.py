"""Running work on a RayCluster, by the shapes of Ray's own list of jobs."""

import json
from typing import Any

import pytest

from berth.components.programs.jobs import running_jobs
from berth.lab.home import CLONE


def job(**facts: Any) -> dict[str, Any]:
    usual = {
        "type": "SUBMISSION",
        "job_id": None,
        "submission_id": "raysubmit_1",
        "status": "RUNNING",
    }
    return usual | {"entrypoint": "python train.py", "start_time": 1_700_000_000_000} | facts


def test_jobs_and_attached_sessions_run_and_what_ended_does_not() -> None:
    session = job(
        type="DRIVER",
        job_id="02000000",
        submission_id=None,
        entrypoint="",
        start_time=1_600_000_000_000,
    )
    ended = [
        job(submission_id=f"raysubmit_{state}", status=state)
        for state in ("SUCCEEDED", "FAILED", "STOPPED")
    ]
    waiting = job(submission_id="raysubmit_2", status="PENDING", start_time=None)
    found = running_jobs(
        "a warning of the container\n" + json.dumps([job(), session, waiting, *ended])
    )
    assert [str(item) for item in found] == [
        "job raysubmit_2 (pending): python train.py",
        "session 02000000 (running)",
        "job raysubmit_1 (running): python train.py",
    ]
    assert found[-1].since == 1_700_000_000


def test_a_submitted_job_counts_until_it_ends_as_a_real_ray_lists_it() -> None:
    cases = json.loads((CLONE / "tests/unit/cli/verbs/ray_jobs.json").read_text(encoding="utf-8"))[
        "cases"
    ]
    waiting = cases["gpus that are not there"][1][1]
    ended = [cases[name][1] for name in ("stopped", "succeeded", "failed with 3")]
    assert [item.id for item in running_jobs(json.dumps([*cases["list"][1], waiting, *ended]))] == [
        "one",
        "gpu",
    ]


def test_a_long_entrypoint_is_cut_and_on_one_line() -> None:
    (found,) = running_jobs(json.dumps([job(entrypoint="python -c '\n" + "x" * 100)]))
    assert len(found.entrypoint) == 80
    assert "\n" not in found.entrypoint


@pytest.mark.parametrize("answer", ["", "Internal Server Error", "[1"])
def test_an_answer_that_is_none(answer: str) -> None:
    with pytest.raises(ValueError, match="not a list of jobs"):
        running_jobs(answer)
