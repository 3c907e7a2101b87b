"""Free machines of reservations, as `berth preview` and `berth up` ask before an update."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.cli.reach import google_cloud
from berth.cli.reach.google_cloud import GoogleError
from tests.unit.cli.test_preview import Project
from tests.unit.cli.verbs.recorded_google import Recorded
from tests.unit.components.gke.effects.test_reserved import reserved_pool
from tests.unit.components.plan.plans import POOL, event

ZONE = "compute projects/owner/zones/b"
RESERVATION = f"{ZONE}/reservations/a4"
DESCRIBE = "gcloud compute reservations describe a4 --project owner --zone b"


def counts(count: int, in_use: int) -> dict[str, str]:
    """Counts of a reservation or block, which come as text."""
    return {"count": str(count), "inUseCount": str(in_use)}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def google(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> Recorded:
    """Google Cloud with these answers."""
    recorded = Recorded(answers)
    monkeypatch.setattr(google_cloud, "GoogleClient", lambda _project: recorded)
    return recorded


def berth(verb: str, *options: str) -> Result:
    return CliRunner().invoke(app, [verb, "-s", "fleet", *options], catch_exceptions=False)


def plan(project: Project, **size: Any) -> None:
    """Plan a new pool on a reservation."""
    project.says(event("create", POOL, "train", None, reserved_pool(**size)))


@pytest.mark.parametrize(
    ("below", "answer", "words"),
    [
        ("", {"specificReservation": counts(4, 3)}, "reservation 'a4' of project owner in b"),
        (
            "/reservationBlocks/one",
            {"resource": counts(4, 3)},
            "block 'one' of reservation 'a4' of project owner in b",
        ),
        (
            "/reservationBlocks/one/reservationSubBlocks/s",
            {"resource": counts(4, 3)},
            "sub-block 's' of block 'one' of reservation 'a4' of project owner in b",
        ),
    ],
)
def test_a_full_reservation_is_said_before_an_update(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    below: str,
    answer: dict[str, Any],
    words: str,
) -> None:
    google(monkeypatch, {RESERVATION + below: answer})
    plan(project, nodeCount=2, below=below)
    shown = berth("preview", "--json")
    assert shown.exit_code == 0
    (warning,) = json.loads(shown.stdout)["warnings"]
    assert f"{words} has 1 of its 4 a4-highgpu-8g free, and the plan takes 2 (train)" in warning
    assert f"set fewer pools.train.nodes, or free machines (who uses them: {DESCRIBE})" in warning
    refused = berth("up", "--yes")
    assert refused.exit_code == 1
    assert "nothing was done" in refused.output
    assert "pulumi up -s fleet" in refused.output
    assert not [command for command in project.commands if "--skip-preview" in command]


def test_a_reservation_with_enough_machines_is_no_obstacle(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    google(monkeypatch, {RESERVATION: {"specificReservation": counts(4, 2)}})
    plan(project, nodeCount=2)
    assert json.loads(berth("preview", "--json").stdout)["warnings"] == []
    assert berth("up", "--yes").exit_code == 0
    assert [command for command in project.commands if "--skip-preview" in command]


@pytest.mark.parametrize(
    "error",
    [
        GoogleError("forbidden", "you may not read this: compute.reservations.get"),
        GoogleError("absent", "The resource was not found"),
    ],
)
def test_a_reservation_that_cannot_be_asked_is_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch, error: GoogleError
) -> None:
    google(monkeypatch, {RESERVATION: error})
    plan(project, nodeCount=2)
    (warning,) = json.loads(berth("preview", "--json").stdout)["warnings"]
    assert warning == (
        f"reservation 'a4' of project owner in b was not asked for free machines: {error.problem}"
    )
    assert berth("up", "--yes").exit_code == 0


def test_without_credentials_an_update_goes_on_with_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_credentials(_project: str) -> Recorded:
        raise GoogleError("credentials", "there are no Google credentials", "gcloud auth login")

    monkeypatch.setattr(google_cloud, "GoogleClient", no_credentials)
    plan(project, nodeCount=2, zones=["b", "c"])
    warnings = json.loads(berth("preview", "--json").stdout)["warnings"]
    assert len(warnings) == 1
    assert "there are no Google credentials (gcloud auth login)" in warnings[0]
    assert berth("up", "--yes").exit_code == 0


def test_nobody_is_asked_where_no_reservation_gives_machines(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = google(monkeypatch, {})
    project.plans("noop")
    assert berth("preview").exit_code == 0
    assert recorded.asked == []
