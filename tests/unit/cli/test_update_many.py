"""`berth up --all`: which stacks it updates, and what comes of wrong ones."""

import json
import os
import signal
from pathlib import Path

import pytest

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.update.question import Options
from berth.cli.reach.own_stacks import own_stacks
from berth.cli.verbs.up import stacks
from berth.cli.verbs.up.stacks import up_all
from berth.components.core.errors import BAD_INPUT, FAILED, BadInputError
from tests.unit.cli.fake_pulumi import FakePulumi, errors

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
    """`pulumi` that only notes its commands, in a project with an environment."""
    folder = tmp_path / "stacks"
    folder.mkdir()
    (folder / "Pulumi.env.yaml").write_text(ENVIRONMENT)
    return FakePulumi(tmp_path, monkeypatch)


def write(pulumi: FakePulumi, stack: str, engineer: str) -> None:
    (pulumi.folder / "stacks" / f"Pulumi.{stack}.yaml").write_text(
        f"config:\n  berth:engineer: {engineer}\n"
    )


def test_own_stacks_of_the_environment_that_this_project_applies(pulumi: FakePulumi) -> None:
    write(pulumi, "alice", "{environment: env}")
    write(pulumi, "bob", "{environment: other}")
    write(pulumi, "carol-isolation", "{environment: env, name: carol, part: isolation}")
    write(pulumi, "carol", "{environment: env, part: cluster}")
    assert own_stacks("env", without="cluster") == {
        "alice": "alice",
        "carol": "carol-isolation",
    }


def test_wrong_settings_of_any_stack_change_nothing(
    pulumi: FakePulumi, capsys: pytest.CaptureFixture[str]
) -> None:
    write(pulumi, "alice", "{environment: env}")
    write(pulumi, "bob", "{environment: env, wrokers: 2}")
    write(pulumi, "carol", "{environment: env, worker: {pool: gone}}")
    assert up_all("env", Options(yes=True)) == BAD_INPUT
    printed = capsys.readouterr().err
    assert (
        "wrokers" in printed,
        "there is no pool 'gone'" in printed,
        "nothing was done" in printed,
    ) == (True,) * 3
    assert pulumi.commands == []


def test_an_engineers_stack_has_no_others_on_it(pulumi: FakePulumi) -> None:
    write(pulumi, "alice", "{environment: env}")
    with pytest.raises(BadInputError, match="not an environment"):
        up_all("alice", Options())


def test_a_stack_that_the_backend_lacks_is_made_and_the_others_are_planned_first(
    pulumi: FakePulumi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(pulumi, "alice", "{environment: env}")
    write(pulumi, "bob", "{environment: env}")
    monkeypatch.setattr(stacks, "bring_up", lambda *_: 0)
    monkeypatch.setattr(pulumi_stack, "stacks_in_backend", lambda: {"alice": 1})
    assert up_all("env", Options(yes=True, as_json=True)) == 0
    first, *rest = [command.partition(" --json")[0] for command in pulumi.commands]
    assert first == "preview --stack alice"
    rest.remove("stack output")  # of the environment, whose cluster says whether alice is ready
    assert sorted(rest) == [
        "stack init bob --no-select",
        "up --yes --skip-preview --stack alice",
        "up --yes --skip-preview --stack bob",
    ]
    results = {
        own["stack"]: own["result"] for own in json.loads(capsys.readouterr().out)["ownStacks"]
    }
    assert results == {"alice": "unchanged", "bob": "up"}


def one_at_a_time(pulumi: FakePulumi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three own stacks that the backend lacks yet, on an environment that is up."""
    for stack in ("alice", "bob", "carol"):
        write(pulumi, stack, "{environment: env}")
    monkeypatch.setattr(stacks, "AT_ONCE", 1)
    monkeypatch.setattr(stacks, "bring_up", lambda *_: 0)
    monkeypatch.setattr(pulumi_stack, "stacks_in_backend", dict)


def test_a_stack_that_fails_does_not_stop_the_others(
    pulumi: FakePulumi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one_at_a_time(pulumi, monkeypatch)
    pulumi.says(*errors("no quota"), code_of_update=1, failing="bob")
    assert up_all("env", Options(yes=True, as_json=True)) == FAILED
    printed = capsys.readouterr()
    results = {own["stack"]: own["result"] for own in json.loads(printed.out)["ownStacks"]}
    assert results == {"alice": "up", "bob": "failed", "carol": "up"}
    assert "failed: bob: no quota\n" in printed.err


def test_an_interrupt_begins_no_further_stack(
    pulumi: FakePulumi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one_at_a_time(pulumi, monkeypatch)
    monkeypatch.setattr(
        pulumi_stack, "create_stack", lambda _: os.kill(os.getpid(), signal.SIGTERM)
    )
    assert up_all("env", Options(yes=True)) == 143
    assert [command.split()[0] for command in pulumi.commands] in ([], ["up"])
    assert "go on with: berth up -s env --all" in capsys.readouterr().err
