"""Runs of the engine that `berth up` takes: one plan, and an update only where there is one."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from berth.cli.engine import Inline, UpdateResult
from berth.cli.main import app
from berth.cli.own_program import is_berths_own
from berth.cli.preview.verb import Planned
from berth.cli.update import verb
from berth.cli.update.phases import Phase
from berth.components.plan.plan import BERTH
from berth.stacks.load.stack import Environment, load_stack
from berth.stacks.preview.report import Known, Report
from berth.stacks.program import main as program
from tests.unit.cli.fake_pulumi import ROOT
from tests.unit.cli.test_preview import Project
from tests.unit.cli.test_update_unchanged import resources_of


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose stack is ready as soon as it is up."""
    monkeypatch.setattr(verb, "ready", lambda *_: UpdateResult(interrupted=False))
    return Project(tmp_path, monkeypatch)


def up() -> Result:
    return CliRunner().invoke(app, ["up", "-s", "fleet", "--yes", "--allow-destroy"], catch_exceptions=False)


def runs(project: Project) -> list[str]:
    return [command for command in project.commands if command.startswith(("preview", "up"))]


def verbs(project: Project) -> list[str]:
    return [command.split()[0] for command in runs(project)]


def berths() -> list[dict[str, Any]]:
    """Resources of the fleet's berths, as its settings want them."""
    loaded = load_stack("fleet")
    assert isinstance(loaded, Environment)
    return resources_of(loaded)


def test_nothing_to_do_is_one_plan(project: Project) -> None:
    project.plans("noop")
    done = up()
    assert (done.exit_code, verbs(project)) == (0, ["preview"]), done.output
    assert "fleet is up: " in done.stdout


def test_an_output_that_changes_is_an_update(project: Project) -> None:
    project.plans("noop", outputs={"clusterId": "another"})
    assert (up().exit_code, verbs(project)) == (0, ["preview", "up"])


def test_unchanged_berths_are_left_out_of_the_plan(project: Project) -> None:
    project.plans("noop", resources=berths())
    assert up().exit_code == 0
    (plan,) = runs(project)
    assert "--exclude" not in plan
    assert project.planned_without_the_rest == {ROOT}


@pytest.mark.parametrize("place", ["folder", "service"])
def test_where_another_state_cannot_be_planned_the_engine_leaves_them_out(
    place: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi Cloud has policies of its own; a newer Pulumi may lay a folder out in another way."""
    if place == "service":
        monkeypatch.setenv("PULUMI_BACKEND_URL", "https://api.pulumi.com")
    resources = berths()
    project.plans("noop", resources=resources, refused="no stack named fleet found")
    assert up().exit_code == 0
    assert len(runs(project)) == (1 if place == "service" else 2)
    for item in resources:
        assert f" --exclude {item['urn']} " in runs(project)[-1]


def test_a_plan_needs_no_room_for_another_state(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.plans("noop", resources=berths())
    monkeypatch.setattr(tempfile, "tempdir", str(project.folder / "missing"))
    assert up().exit_code == 0
    assert ["--exclude" in run for run in runs(project)] == [True]


def test_berths_that_are_left_out_are_in_the_plan(project: Project) -> None:
    resources = [item | {"custom": item["type"] != BERTH} for item in berths()]
    project.says(resources=resources)
    options = ["preview", "-s", "fleet", "--json"]
    document = json.loads(CliRunner().invoke(app, options, catch_exceptions=False).stdout)
    assert {key: count for key, count in document["counts"].items() if count} == {"same": 15}


@pytest.mark.parametrize(("recording", "left_out"), [("driver", False), ("engineer-removed", True)])
def test_berths_are_left_out_only_if_nothing_around_them_changes(
    recording: str,
    left_out: bool,  # noqa: FBT001
    project: Project,
) -> None:
    project.plans(recording, resources=berths())
    assert up().exit_code == 0
    expected = ["preview", "up"] if left_out else ["preview", "preview", "up"]
    assert verbs(project) == expected
    assert (f"::{BERTH}" in runs(project)[-1]) == left_out


@pytest.mark.parametrize(
    ("file", "text"),
    [("__main__.py", "import mine\nfrom berth.stacks.program import run\nrun()\n"), ("Pulumi.yaml", "main: mine\n")],
)
def test_an_edited_program_runs_as_pulumi_runs_it(file: str, text: str, project: Project) -> None:
    """An edited program may have resources of its own, which berth's program would delete."""
    project.plans("noop", resources=berths())
    (project.folder / file).write_text(text)
    assert up().exit_code == 0
    assert verbs(project) == ["preview", "up"]
    assert all("auto.local" in run and "--exclude" not in run for run in runs(project))


@pytest.mark.parametrize(("venv", "own"), [(sys.prefix, True), ("missing", True), ("stacks", False)])
def test_the_program_of_another_python_runs_there(venv: str, own: bool, project: Project) -> None:  # noqa: FBT001
    runtime = f"runtime: {{name: python, options: {{virtualenv: '{venv}'}}}}\n"
    (project.folder / "Pulumi.yaml").write_text(f"name: berth\n{runtime}")
    (project.folder / "__main__.py").write_text("from berth.stacks.program import run  # berth\n\nrun()\n")
    assert is_berths_own() == own


@pytest.mark.parametrize(("protected", "expected"), [(False, ["destroy"]), (True, ["preview"])])
def test_a_destruction_is_planned_by_the_state(
    protected: bool,  # noqa: FBT001
    expected: list[str],
    project: Project,
) -> None:
    """The engine plans only what it may refuse."""
    resources = [item | {"custom": True} for item in berths() if item["type"] != BERTH]
    resources[0]["protect"] = protected
    project.says(resources=resources)
    done = CliRunner().invoke(app, ["destroy", "-s", "fleet", "--yes", "--allow-destroy"], catch_exceptions=False)
    found = [command for command in project.commands if "auto." in command]
    assert ["preview" if "--preview-only" in command else command.split()[0] for command in found] == expected
    assert (f"destroys {len(resources)} resources of stack fleet" in done.stderr) == (not protected)
    # The engine's own number, four a core, deletes RayClusters and namespaces in many rounds.
    assert [" --parallel 128 " in f"{command} " for command in found] == [not protected]


def test_the_platform_is_brought_up_without_registering_berths(project: Project) -> None:
    project.says()
    loaded = load_stack("fleet")
    assert isinstance(loaded, Environment)
    whole = program.Inline()
    plan = Planned(Report(Known("fleet", "environment"), (), (), {}, (), None, ()), loaded, whole)
    platform, all_of_it = (verb._inline(plan, phase) for phase in (Phase("platform"), Phase()))  # noqa: SLF001
    assert platform is not None
    assert isinstance(platform.program, program.Inline)
    assert set(platform.program.unchanged) == {inputs.settings.name for inputs in loaded.berths}
    assert all_of_it == Inline(whole)
