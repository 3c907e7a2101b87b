"""`berth up` and `berth destroy`: what is asked, how far it is by the engine's events, and what an interrupt does."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from berth.cli.running import Running
from berth.cli.update import engine, verb
from berth.cli.update.losses import Loss, Losses
from berth.cli.update.tracker import Tracker
from berth.cli.update.verb import Options
from berth.components.plan.plan import plan_of
from berth.components.programs.jobs import RunningJob
from berth.stacks.preview.report import Known, Report, report_of
from tests.unit.cli.preview_recordings import FOLDER

PULUMI = """#!{python}
import json, os, signal, sys, time
def interrupted(*_):
    print(json.dumps({{"diagnosticEvent": {{"severity": "error", "message": "update canceled"}}}}), flush=True)
    sys.exit(1)
signal.signal(signal.SIGINT, interrupted)
open(os.path.join({folder!r}, "asked"), "a").write(" ".join(sys.argv[1:]) + "\\n")
print(json.dumps({{"resourcePreEvent": {{"metadata": {{"op": "create", "urn": "x"}}}}}}), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("changes", "loses", "options", "code"),
    [
        (False, False, Options(), None),
        (True, False, Options(), 2),
        (True, False, Options(yes=True), None),
        (True, True, Options(), 3),
        (True, True, Options(yes=True), 3),
        (True, True, Options(yes=True, allow_destroy=True), None),
        (True, True, Options(allow_destroy=True), None),
    ],
)
def test_where_nobody_can_be_asked(
    changes: bool,  # noqa: FBT001
    loses: bool,  # noqa: FBT001
    options: Options,
    code: int | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert verb._may("berth up -s x", changes, loses, options) == code  # noqa: SLF001
    told = capsys.readouterr().err
    assert ("nothing was done" in told) == (code is not None)
    assert ("berth up -s x --yes --allow-destroy" in told) == (code == 3)


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines() if line.startswith("{")]


def created() -> tuple[Report, list[dict[str, Any]]]:
    """A recorded plan that makes a fleet, and its events as an update would have them."""
    plan = recorded("create")
    begun = [event for event in plan if "resourcePreEvent" in event]
    ended = [{"resOutputsEvent": event["resourcePreEvent"]} for event in begun]
    return report_of(plan_of(plan), Known("fleet", "environment")), [*begun, *ended]


def test_components_are_done_when_all_their_resources_are() -> None:
    report, events = created()
    ticks = iter(range(10_000))
    tracker = Tracker(report, lambda: float(next(ticks)))
    completed = [each.title for event in events for each in tracker.see(event)]
    assert sorted(completed) == sorted(part.title for part in report.parts)
    for part in report.parts:
        component = tracker.components[part.title]
        assert (component.planned, len(component.done)) == (len(part.changes), len(part.changes))
        assert component.complete
        assert component.seconds > 0


def test_a_failure_is_the_components_and_says_so() -> None:
    report, events = created()
    tracker = Tracker(report, lambda: 0.0)
    urn = report.parts[0].changes[0].step.urn
    tracker.see({"resourcePreEvent": {"metadata": {"op": "create", "urn": urn}}})
    tracker.see({"resOpFailedEvent": {"metadata": {"op": "create", "urn": urn}}})
    tracker.see({"diagnosticEvent": {"severity": "error", "message": "no quota\n", "urn": urn}})
    component = tracker.components[report.parts[0].title]
    assert (component.failed, component.complete) == (True, False)
    assert tracker.errors == {report.parts[0].title: ["no quota"]}
    assert events


def test_ctrl_c_is_passed_on_to_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    program = tmp_path / "pulumi"
    program.write_text(PULUMI.format(python=sys.executable, folder=str(tmp_path)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    told: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    ended = engine.update("env", "up", lambda _event: _interrupt_once(told), told.append)
    assert (ended.code, ended.interrupted, ended.error) == (1, True, "update canceled")
    assert told == [1]
    assert (tmp_path / "asked").read_text() == "up --stack env --json --yes --skip-preview --non-interactive\n"
    assert signal.getsignal(signal.SIGINT) == before


def _interrupt_once(told: list[int]) -> None:
    if not told:
        os.kill(os.getpid(), signal.SIGINT)


def test_what_is_lost_is_said_with_what_runs() -> None:
    job = RunningJob("raysubmit_1", "job", "RUNNING", "python train.py", 1.0)
    busy = Loss("alice", "berth-alice", "alice", "ready", Running([job], pods=3))
    asleep = Loss(
        "bob", "berth-bob", "env", "suspended", Running(pods=0, note="it has no head pod, so nothing runs on it")
    )
    losses = Losses([busy, asleep])
    assert str(busy) == "alice: ready, 3 pods, of stack alice; job raysubmit_1 (running): python train.py"
    assert losses.felt
    assert not Losses([asleep]).felt
    assert Losses(not_asked="no answer").felt
    assert losses.stacks_left("env") == ["alice"]
