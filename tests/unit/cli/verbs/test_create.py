"""`berth create` as a whole: what it asks before it writes, and a second run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.stacks.load.stack import Environment, load_text
from tests.unit import serving
from tests.unit.cli.fake_pulumi import FakePulumi, errors

SETTINGS = Path(__file__).with_name("engineer_environment.yaml").read_text(encoding="utf-8")
SHARED = SETTINGS.replace(
    "capacity: spot} # one node",
    (
        "capacity: spot, sharing: any} # one node\n"
        "    sharing: {any: {kind: time-slicing, replicas: 4}}"
    ),
)
DEAD = "https://127.0.0.1:1"


class Project(FakePulumi):
    """A project with one environment, and what `pulumi` will say there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        self.stacks = folder / "stacks"
        self.stacks.mkdir()
        (self.stacks / "Pulumi.env.yaml").write_text(SETTINGS)

    def outputs_at(self, server: str, settings: str = SETTINGS) -> dict[str, Any]:
        """Outputs of the environment's stack, with a cluster at an address."""
        loaded = load_text("env", settings)
        assert isinstance(loaded, Environment)
        contract = loaded.contract().model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"environment": contract, "kubeconfig": serving.kubeconfig(server)}

    @property
    def left(self) -> list[str]:
        """Files of berths, and stacks in the backend, that a failed attempt left."""
        files = [path.name for path in self.stacks.glob("Pulumi.*.yaml")]
        made = [command for command in self.commands if command.startswith("stack init")]
        return [name for name in files if name != "Pulumi.env.yaml"] + made


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


@pytest.fixture
def server() -> Iterator[str]:
    """Address of an API server that answers, and has nothing ready."""

    def version(handler: serving.Handler) -> None:
        serving.answer(handler, {"kind": "Status"}, 200 if handler.path == "/version" else 503)

    with serving.serving(version) as address:
        yield address


def changing(project: Project) -> list[str]:
    """Commands of Pulumi so far, without options, and without those that only ask."""
    asked = ("stack output", "stack history", "whoami")
    return [
        command.partition(" --")[0] for command in project.commands if not command.startswith(asked)
    ]


def create(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["create", "alice", *arguments, "--yes"])


def test_an_environment_that_is_not_up_leaves_nothing(project: Project) -> None:
    done = create("--gpus", "1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "error: stack env has not been brought up; run: berth up -s env\n"
    assert project.left == []


def test_a_cluster_that_does_not_answer_leaves_nothing(project: Project) -> None:
    project.says(outputs=project.outputs_at(DEAD))
    done = create("--gpus", "1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"error: the API server {DEAD} does not answer: " in done.stderr
    assert "pulumi refresh -s env" in done.stderr
    assert project.left == []


def test_an_unknown_environment_leaves_nothing(project: Project) -> None:
    done = create("-e", "envv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there is no stack 'envv'" in done.stderr
    assert project.left == []


def test_one_command_writes_plans_and_creates_and_a_second_run_goes_on(
    project: Project, server: str
) -> None:
    outputs = project.outputs_at(server)
    project.says(*errors("no quota"), outputs=outputs, code_of_update=1)
    done = create("--gpus", "2")
    assert (done.exit_code, "error: no quota" in done.stderr) == (1, True), done.output
    assert "alice on env: 1 worker with 2 × B200, " in done.stderr
    assert changing(project) == ["stack ls", "stack init alice", "preview", "up"]
    project.says(outputs=outputs, stacks=["alice"])
    done = create("--gpus", "2", "--json")
    assert json.loads(done.stdout)["result"] == "succeeded"
    assert changing(project)[4:] == ["stack ls", "preview", "up"]


def test_a_share_is_named_as_a_part_of_a_gpu(project: Project, server: str) -> None:
    (project.stacks / "Pulumi.env.yaml").write_text(SHARED)
    project.says(outputs=project.outputs_at(server, SHARED))
    done = create("--gpus", "1")
    assert done.exit_code == 0, done.output
    assert "alice on env: 1 worker with 1 share (1/4 of a B200, 180 GiB shared), " in done.stderr


@pytest.mark.parametrize(
    ("written", "options", "other"),
    [
        ("", ["--gpus", "1"], ""),
        ("worker: {gpus: 1}", [], ""),
        ("worker: {gpus: 1, cpu: 4}", ["--gpus", "1"], ""),
        ("worker: {cpu: '4'}", ["--cpu", "4"], ""),
        ("", ["--gpus", "1", "--pool", "dev", "-e", "env"], ""),
        ("worker: {gpus: 1}", ["--gpus", "2"], "worker.gpus is 1 there, not 2"),
        (
            "",
            ["--gpus", "2", "--workers", "2"],
            "workers is not set there, not 2; worker.gpus is not set there, not 2",
        ),
        ("", ["-e", "other"], "environment is env there, not other"),
    ],
)
def test_options_that_say_what_holds_already_are_no_other_settings(
    project: Project, written: str, options: list[str], other: str
) -> None:
    path = project.stacks / "Pulumi.alice.yaml"
    path.write_text(f"config:\n  berth:engineer:\n    environment: env\n    {written}\n")
    before = path.read_text()
    done = create(*options, "--write-only")
    if other:
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"exists with other settings ({other}); nothing was changed" in done.stderr
    else:
        assert (done.exit_code, "nothing was changed" in done.stdout) == (0, True), done.stderr
    assert path.read_text() == before


def test_the_file_names_the_environment_where_there_are_several(project: Project) -> None:
    (project.stacks / "Pulumi.other.yaml").write_text(SETTINGS)
    (project.stacks / "Pulumi.alice.yaml").write_text(
        "config:\n  berth:engineer:\n    environment: env\n"
    )
    assert create("--write-only").exit_code == 0
