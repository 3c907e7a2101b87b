"""`berth up --all`: which stacks it updates, and what comes of wrong ones."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from berth.cli import backend
from berth.cli.pulumi_program import Pulumi
from berth.cli.reach.environment import Environment
from berth.cli.update import many, pool
from berth.cli.update.pool import Pool
from berth.cli.update.verb import Options
from berth.components.core.errors import BAD_INPUT, BadInputError
from berth.stacks.load.stack import Environment as Settings
from berth.stacks.load.stack import load_stack
from tests.unit.cli.fake_pulumi import FakePulumi

ENVIRONMENT = """config:
  berth:environment:
    project: berth-test
    zone: us-central1-b
    pools:
      cpu: {machineType: n2-standard-16, nodes: 1}
      dev: {machineType: g2-standard-4, nodes: 2}
"""


@pytest.fixture
def pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePulumi:
    """`pulumi` that only notes its commands."""
    return FakePulumi(tmp_path, monkeypatch)


@pytest.fixture
def stacks(pulumi: FakePulumi, tmp_path: Path) -> Path:
    """A project with an environment."""
    assert pulumi
    folder = tmp_path / "stacks"
    folder.mkdir()
    (folder / "Pulumi.env.yaml").write_text(ENVIRONMENT)
    return folder


def up_all(stack: str, options: Options) -> int:
    with backend.Asked(stack) as asked:
        return many.up_all(asked, options)


def write(folder: Path, stack: str, engineer: str) -> None:
    (folder / f"Pulumi.{stack}.yaml").write_text(f"config:\n  berth:engineer: {engineer}\n")


def test_own_stacks_of_the_environment_that_this_project_applies(stacks: Path) -> None:
    write(stacks, "alice", "{environment: env}")
    write(stacks, "bob", "{environment: other}")
    write(stacks, "carol-isolation", "{environment: env, name: carol, part: isolation}")
    write(stacks, "carol", "{environment: env, part: cluster}")
    assert many.own_stacks("env") == ["alice", "carol-isolation"]


def test_wrong_settings_of_any_stack_change_nothing(
    pulumi: FakePulumi, stacks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(stacks, "alice", "{environment: env}")
    write(stacks, "bob", "{environment: env, wrokers: 2}")
    write(stacks, "carol", "{environment: env, worker: {pool: gone}}")
    assert up_all("env", Options(yes=True)) == BAD_INPUT
    printed = capsys.readouterr().err
    assert ("wrokers" in printed, "there is no pool 'gone'" in printed, "nothing was done" in printed) == (True,) * 3
    assert [command for command in pulumi.commands if not command.startswith("stack output")] == []


def test_an_engineers_stack_has_no_others_on_it(stacks: Path) -> None:
    write(stacks, "alice", "{environment: env}")
    with pytest.raises(BadInputError, match="not an environment"):
        up_all("alice", Options())


@pytest.mark.parametrize("edit", ["", "import mine\n"])
def test_an_edited_program_runs_as_pulumi_runs_it(
    edit: str, pulumi: FakePulumi, stacks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edited program may have resources of its own, which berth's program would delete."""
    write(stacks, "alice", "{environment: env}")
    write(stacks, "bob", "{environment: env}")
    loaded = load_stack("env")
    assert isinstance(loaded, Settings)
    monkeypatch.setattr(many, "up", lambda *_: 0)
    monkeypatch.setattr(many, "brought_up", lambda _: Environment("env", loaded.contract(), ""))
    monkeypatch.setattr(many, "provider_of", lambda _: {})
    monkeypatch.setattr(many, "unready_of", lambda *_: {})
    monkeypatch.setattr(backend, "stacks", lambda: {"alice": 1})
    program = stacks.parent / "__main__.py"
    program.write_text(edit + program.read_text())
    assert up_all("env", Options(yes=True)) == 0
    runs = [command for command in pulumi.commands if command.startswith(("preview", "up"))]
    assert [command.split()[0] for command in runs] == ["preview", "up"]
    assert ["--client=PROGRAM" in command for command in runs] == [not edit] * 2


def test_an_interrupt_begins_no_further_stack(stacks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stacks
    monkeypatch.setattr(pool, "AT_ONCE", 2)
    began, both = [], threading.Barrier(2, action=lambda: os.kill(os.getpid(), signal.SIGTERM))

    def task(pulumi: Pulumi) -> str:
        began.append(pulumi)
        both.wait(timeout=30)
        with engines.stopped:
            engines.stopped.wait_for(lambda: pulumi.interrupts > 0, timeout=30)
        return ""

    class Engines(Pool):
        stopped = threading.Condition()

    before = signal.getsignal(signal.SIGTERM)
    with Engines() as engines:
        ended = threading.Event()

        def wake() -> None:
            engines.stop.wait(30)
            with engines.stopped:
                engines.stopped.notify_all()
            ended.set()

        threading.Thread(target=wake, daemon=True).start()
        engines.run("updating", dict.fromkeys(("a", "b", "c", "d"), task))
        assert ended.wait(30)
    assert (len(began), engines.interrupts, engines.terminated) == (2, 1, True)
    assert signal.getsignal(signal.SIGTERM) == before
