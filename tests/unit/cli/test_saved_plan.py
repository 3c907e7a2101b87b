"""`berth preview --save` and `berth up --plan`: only what was reviewed runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from tests.unit.cases import over, says, table
from tests.unit.cli.test_preview import Project

RUNS = "✓ fleet is up…"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def berth(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "-s", "fleet"], catch_exceptions=False)


def saved(project: Project, recording: str) -> dict[str, Any]:
    project.plans(recording)
    berth("preview", "--save", "plan.json")
    return dict(json.loads((project.folder / "plan.json").read_text()))


def updates(project: Project) -> int:
    return sum(command.startswith("up ") for command in project.commands)


@pytest.mark.parametrize(("reviewed", "now", "edit", "answer"), table(__file__, "saved_plan.yaml"))
def test_an_update_is_within_its_plan(
    project: Project, reviewed: str, now: str, edit: dict[str, Any], answer: str
) -> None:
    plan = over(saved(project, reviewed), edit.get("plan", {}))
    (project.folder / "plan.json").write_text(json.dumps(plan) if plan else "not JSON")
    settings = project.folder / "stacks" / "Pulumi.fleet.yaml"
    before, after = edit.get("settings", ("", ""))
    settings.write_text(re.sub(before, after, settings.read_text()))
    project.plans(now)
    done = berth("up", "--yes", "--allow-destroy", "--plan", "plan.json")
    runs = answer == RUNS
    assert (done.exit_code, updates(project)) == ((0, 1) if runs else (2, 0)), done.output
    assert says(done.stdout if runs else done.stderr.partition("error: ")[2], answer), done.output


def test_a_saved_plan_has_no_secret(project: Project) -> None:
    kind = "kubernetes:core/v1:Secret"
    step: dict[str, Any] = {"op": "create", "type": kind, "urn": f"x::{kind}::x"}
    step["new"] = {"type": kind, "custom": True, "inputs": {"stringData": {"password": "hunter2"}}}
    project.plans("noop", {"resourcePreEvent": {"metadata": step}})
    berth("preview", "--save", "plan.json")
    text = (project.folder / "plan.json").read_text()
    assert (step["urn"] in json.loads(text)["inputs"], "hunter2" in text) == (True, False)


@pytest.mark.parametrize("options", [["--all", "--plan", "x"], ["--plan", "no/such/file"]])
def test_a_plan_that_cannot_be_used(project: Project, options: list[str]) -> None:
    project.plans("noop")
    done = berth("up", "--yes", *options)
    assert (done.exit_code, updates(project)) == (2, 0)
    assert options[-1] in done.stderr or "leave --all or --plan out" in done.stderr


def test_a_plan_is_saved_where_files_can_be_written(project: Project) -> None:
    project.plans("noop")
    done = berth("preview", "--save", "no/such/folder/plan.json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no/such/folder/plan.json cannot be written" in done.stderr
