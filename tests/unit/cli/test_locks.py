"""Updates of a stack that another update has locked, by the backend's files and by the engine."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from tests.unit.cli.fake_pulumi import errors
from tests.unit.cli.test_preview import Project

SINCE = "2026-11-29T06:00:00Z"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path, monkeypatch)
    project.plans("noop", state=f"file://{tmp_path}/state?metadata=skip")
    return project


@pytest.fixture
def dead() -> int:
    """Number of a process that ran."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        return ended.pid


def lock(project: Project, pid: int, host: str, stack: str = "fleet", name: str = "berth") -> None:
    folder = project.folder / "state/.pulumi/locks/organization" / name / stack
    folder.mkdir(parents=True)
    holder = {"pid": pid, "username": "ci", "hostname": host, "timestamp": f"{SINCE[:-1]}.123Z"}
    (folder / "5b7b6a3c.json").write_text(json.dumps(holder))


def berth(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, "-s", "fleet", "--yes", "--allow-destroy"])


@pytest.mark.parametrize("verb", ["up", "destroy"])
def test_the_lock_of_a_killed_update_is_said_before_the_engine_begins(
    project: Project, verb: str, dead: int
) -> None:
    lock(project, dead, socket.gethostname())
    done = berth(verb)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: stack fleet is locked by an update that was killed: process {dead} of ci of"
        f" {SINCE} no longer runs on this machine\n"
        "pulumi cancel -s fleet, then the same command again: it goes on where that update ended\n"
    )
    assert project.commands == ["whoami --json"]


@pytest.mark.parametrize(
    ("host", "holder", "remedy"),
    [
        (socket.gethostname(), "this machine", "wait for its end\n"),
        ("ci-1", "ci-1", "wait for its end; if it runs no more: pulumi cancel -s fleet\n"),
    ],
)
def test_an_update_that_may_run_is_waited_for(
    project: Project, host: str, holder: str, remedy: str
) -> None:
    lock(project, os.getpid(), host)
    done = berth("up")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: stack fleet is locked by another update: process {os.getpid()} of ci on {holder},"
        f" since {SINCE}\n{remedy}"
    )


@pytest.mark.parametrize(
    ("stack", "name"), [("other", "berth"), ("fleet", "another-project")], ids=["stack", "project"]
)
def test_another_lock_is_no_hindrance(project: Project, stack: str, name: str, dead: int) -> None:
    lock(project, dead, socket.gethostname(), stack, name)
    assert berth("up").exit_code == 0


def test_a_lock_in_a_bucket_gets_the_same_words_from_the_engines_error(
    project: Project, dead: int
) -> None:
    text = (
        "the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end"
        " or delete the lock file with `pulumi cancel`.\n  gs://state/.pulumi/locks/organization/"
        f"berth/fleet/5b7b6a3c.json: created by ci@{socket.gethostname()} (pid {dead}) at {SINCE}"
    )
    project.says(*errors(text), state="gs://state", code=1)
    done = berth("up")
    assert done.exit_code == 1
    assert f"process {dead} of ci of {SINCE} no longer runs on this machine" in done.stderr
    assert "pulumi cancel -s fleet, then" in done.stderr
