"""`berth up` and `berth destroy`: what is asked, how far it is by the engine's events, and what
an interrupt does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest
from pulumi.automation import EngineEvent, ResOutputsEvent

from berth.cli import engine
from berth.cli.preview.verb import Planned
from berth.cli.pulumi_program import Pulumi
from berth.cli.reach.current_work import Running
from berth.cli.update import verb
from berth.cli.update.losses import Loss, Losses
from berth.cli.update.recovery import Recovery
from berth.cli.update.tracker import Tracker
from berth.cli.update.verb import Options
from berth.components.plan.plan import plan_of
from berth.components.programs.jobs import RunningJob
from berth.stacks.preview.report import Known, Report, report_of
from tests.lab.project import eventually
from tests.unit.cli.fake_pulumi import FakePulumi
from tests.unit.components.plan.recordings import recorded


@pytest.mark.parametrize(
    ("loses", "options", "code"),
    [
        (False, Options(), 2),
        (False, Options(yes=True), None),
        (True, Options(), 3),
        (True, Options(yes=True), 3),
        (True, Options(yes=True, allow_destroy=True), None),
        (True, Options(allow_destroy=True), None),
    ],
)
def test_where_nobody_can_be_asked(
    loses: bool,  # noqa: FBT001
    options: Options,
    code: int | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert verb.refusal("berth up -s x", options, loses=loses) == code
    printed = capsys.readouterr().err
    assert ("nothing was done" in printed) == (code is not None)
    assert ("berth up -s x --yes --allow-destroy" in printed) == (code == 3)


def created() -> tuple[Report, list[EngineEvent]]:
    """A recorded plan that makes a fleet, and its events as an update would have them."""
    plan = recorded("create")
    begun = [event for event in plan if event.resource_pre_event]
    ended = [
        EngineEvent(0, 0, res_outputs_event=ResOutputsEvent(item.metadata))
        for event in begun
        if (item := event.resource_pre_event)
    ]
    return report_of(plan_of(plan), Known("fleet", "environment")), [*begun, *ended]


def test_components_are_done_when_all_their_resources_are() -> None:
    report, events = created()
    ticks = iter(range(10_000))
    tracker = Tracker(report, lambda: float(next(ticks)))
    completed = [item.title for event in events for item in tracker.see(event)]
    assert sorted(completed) == sorted(part.title for part in report.parts)
    for part in report.parts:
        component = tracker.components[part.title]
        assert (component.planned, len(component.done)) == (len(part.changes), len(part.changes))
        assert component.complete
        assert component.seconds > 0


def test_a_failure_is_the_components_and_says_so() -> None:
    report, events = created()
    tracker = Tracker(report, lambda: 0.0)
    urn = report.parts[0].changes[0].urn
    step = {"metadata": {"op": "create", "urn": urn}}
    for event in (
        {"resourcePreEvent": step},
        {"resOpFailedEvent": step},
        {"diagnosticEvent": {"severity": "error", "message": "no quota\n", "urn": urn}},
        {"diagnosticEvent": {"severity": "error", "message": "update failed\n", "urn": ""}},
    ):
        tracker.see(EngineEvent.from_json(event))
    component = tracker.components[report.parts[0].title]
    assert (component.failed, component.complete) == (True, False)
    assert tracker.errors == {report.parts[0].title: ["no quota"]}
    assert events


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_passed_on_to_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: signal.Signals
) -> None:
    pulumi = FakePulumi(tmp_path, monkeypatch)
    pulumi.says({"resourcePreEvent": {"metadata": {"op": "create", "urn": "x"}}}, waits=True)
    counts: list[int] = []
    before = signal.getsignal(sent)

    def interrupt_once(event: EngineEvent) -> None:
        if event.resource_pre_event:
            os.kill(os.getpid(), sent)

    result = engine.update("env", "up", interrupt_once, counts.append)
    assert (result.interrupted, result.error) == (True, "update canceled")
    assert result.terminated == (sent == signal.SIGTERM)
    assert counts == [1]
    assert pulumi.commands == ["up --yes --skip-preview --exec-kind auto.local --event-log LOG --stack env"]
    assert signal.getsignal(sent) == before


def test_what_an_interrupted_engine_leaves_behind_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The engine ends without its language host, which has a process group of its own."""
    FakePulumi(tmp_path, monkeypatch)
    host = tmp_path / "host"
    (tmp_path / "bin" / "pulumi").write_text(
        f"""#!{sys.executable}
import os, signal, subprocess, sys, time
child = subprocess.Popen(["{sys.executable}", "-c", "import time; time.sleep(600)"], process_group=0,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
signal.signal(signal.SIGINT, lambda *_: sys.exit(1))
open("{host}.new", "w").write(str(child.pid))
os.rename("{host}.new", "{host}")
time.sleep(600)
"""
    )
    pulumi = Pulumi(version=False)

    def interrupt() -> None:
        eventually(host.exists, "the language host runs")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        pulumi.run(["preview"], str(tmp_path), {})
    thread.join()
    assert capfd.readouterr().err == ""
    child = int(host.read_text())
    eventually(
        lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE, "it ended"
    )


@pytest.mark.parametrize(("terminated", "code"), [(False, 130), (True, 143)])
def test_an_interrupted_update_has_the_exit_code_of_its_signal(
    terminated: bool,  # noqa: FBT001
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = engine.UpdateResult(interrupted=True, error="update canceled", terminated=terminated)
    monkeypatch.setattr(verb, "update", lambda *_, **__: result)
    assert verb._run("x", "up", Planned(created()[0]), Options(as_json=True), {}, Recovery("x"), ()) == code  # noqa: SLF001


@pytest.mark.parametrize(("name", "says"), [("up", False), ("destroy", True)])
def test_an_interrupted_destroy_says_what_brings_the_stack_back(
    name: engine.Verb,
    says: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = engine.UpdateResult(interrupted=True, error="update canceled")
    monkeypatch.setattr(verb, "update", lambda *_, **__: result)
    assert verb._run("x", name, Planned(created()[0]), Options(), {}, Recovery("x"), ()) == 130  # noqa: SLF001
    printed = capsys.readouterr().err
    assert f"go on with: berth {name} -s x\n" in printed
    assert ("pulumi refresh -s x --yes --clear-pending-creates, then berth up -s x" in printed) == says


def test_an_interrupt_is_not_reported_as_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = engine.UpdateResult(interrupted=True, error="pulumi failed without a reason")
    monkeypatch.setattr(verb, "update", lambda *_, **__: result)
    assert verb._run("x", "up", Planned(created()[0]), Options(as_json=True), {}, Recovery("x"), ()) == 130  # noqa: SLF001
    printed = capsys.readouterr()
    assert json.loads(printed.out)["errors"] == []
    assert "error" not in printed.err
    assert "stack x was interrupted" in printed.err


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
