"""`berth up` and `berth destroy`: what is asked, how far it is by the engine's events, which runs
it takes, and what an interrupt does.
"""

import json
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.cli.pulumi.engine import EngineRun
from berth.cli.pulumi.interrupts import Interrupts
from berth.cli.pulumi.preview import plan
from berth.cli.pulumi.update.question import Options, Verb, refusal_code
from berth.cli.pulumi.update.runs import MANY, runs_of
from berth.cli.pulumi.update.tracker import Tracker
from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.current_work import CurrentWork
from berth.cli.reach.environment import LiveEnvironment
from berth.cli.repository.check import check_stack
from berth.cli.repository.checked_stack import CheckedStack
from berth.cli.verbs.destroy.destruction import Loss
from berth.components.cluster.api import ClusterApi
from berth.components.core.owner import STACK_LABEL
from berth.components.plan.effect import Level
from berth.components.plan.plan import BERTH, STACK, Event, Operation, plan_of
from berth.components.programs.jobs import RunningJob
from berth.stacks.load.stack import load_stack
from berth.stacks.preview.report import (
    ComponentChanges,
    PreviewContext,
    Report,
    ResourceChange,
    report_of,
)
from berth.stacks.program import digest_of
from berth.stacks.program.judged import digest_of_files
from tests.lab.project import eventually
from tests.unit.cases import table
from tests.unit.cli.fake_pulumi import FakePulumi, errors
from tests.unit.cli.test_preview import Project
from tests.unit.components.plan.recordings import recorded


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def berth(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "-s", "fleet"], catch_exceptions=False)


def engines(project: FakePulumi) -> list[str]:
    return [
        command for command in project.commands if command.split()[0] not in ("stack", "whoami")
    ]


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
    loses: bool,
    options: Options,
    code: int | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert refusal_code("berth up -s x", options, loses=loses) == code
    printed = capsys.readouterr().err
    assert ("nothing was done" in printed) == (code is not None)
    assert ("berth up -s x --yes --allow-destroy" in printed) == (code == 3)


def test_an_update_is_a_preview_and_then_plain_pulumi_up(project: Project) -> None:
    project.plans("noop", outputs={"berths": "alice"})
    done = berth("up", "--yes")
    assert done.exit_code == 0, done.output
    assert engines(project) == [
        "preview --stack fleet --json --color never",
        "up --yes --skip-preview --stack fleet --json --color never",
    ]
    assert done.stdout.startswith("✓ fleet is up: 21 unchanged")


def test_the_update_is_given_what_was_judged(project: Project) -> None:
    project.plans("noop")
    assert berth("up", "--yes").exit_code == 0
    assert (project.folder / "judged").read_text() == digest_of_files(load_stack("fleet"))


@pytest.mark.parametrize("command", [["up", "--yes", "--allow-destroy"], ["preview"]])
def test_a_preview_of_other_files_than_the_judged_ones_is_refused(
    project: Project, command: list[str]
) -> None:
    """The engine's program reads the files by itself, before or after the command does."""
    events = step(STACK, "same", {}, {"outputs": {"settings": "of an edit"}})
    project.plans("noop", *map(dict, events))
    done = berth(*command)
    assert done.exit_code == 2
    assert done.stderr.endswith(
        "error: the settings of stack fleet, or a file that they name, were edited after this"
        " command had judged them; nothing of the edit was done\nlook at it as it is now: berth"
        " preview -s fleet\n"
    ), done.stderr
    assert not [run for run in engines(project) if run.startswith("up")]


@pytest.mark.parametrize(("state", "runs"), [("file://~", 1), ("gs://state", 2)])
def test_two_berths_in_a_bucket_have_a_run_of_their_own(
    project: Project, state: str, runs: int
) -> None:
    project.plans("create", state=state)
    assert berth("up", "--yes").exit_code == 0
    assert len([command for command in engines(project) if command.startswith("up")]) == runs


SECRETS = {"environment": {"name": "fleet", "rate": 2.0}, "kubeconfig": ""}
MASKED = {
    "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
    "ciphertext": "[secret]",
}


def step(kind: str, op: str, old: dict[str, Any], new: dict[str, Any]) -> list[Event]:
    """Events of one resource in a preview."""
    metadata = {
        "op": op,
        "urn": f"urn:x::{kind}",
        "type": kind,
        "old": {"type": kind} | old,
        "new": {"type": kind} | new,
    }
    return [
        {"resourcePreEvent": {"metadata": metadata}},
        {"resOutputsEvent": {"metadata": metadata}},
    ]


@pytest.mark.parametrize(("edit", "runs"), table(__file__, "update.yaml"))
def test_an_update_that_would_write_nothing_new_ends_with_the_preview(
    project: Project, edit: Mapping[str, Any], runs: list[str]
) -> None:
    pools = {
        "cpu": {"machineType": "n2-standard-16", "nodes": 1},
        "dev": {"machineType": "g2-standard-4", "nodes": 1},
    }
    settings = {"project": "berth-test", "zone": "us-central1-b", "pools": pools}
    project.set("fleet", environment=settings | {"engineers": edit.get("engineers", {})})
    old = {"outputs": {"berths": "", "environment": MASKED}}
    digests = {
        "digest": edit.get("digest", digest_of(SECRETS)),
        "settings": digest_of_files(load_stack("fleet")),
    }
    outputs = old["outputs"] | digests | edit.get("outputs", {})
    project.says(
        *step("pulumi:providers:kubernetes", edit.get("op", "same"), {}, {}),
        *step(
            "kubernetes:core/v1:Namespace",
            "same",
            {"protect": False},
            {"protect": edit.get("protect", False)},
        ),
        # The stack's outputs are those of before until the program has ended.
        *step("pulumi:pulumi:Stack", "same", old, old),
        *step("pulumi:pulumi:Stack", "same", old, {"outputs": outputs}),
        outputs=SECRETS,
    )
    done = berth("up", "--yes", "--json")
    assert done.exit_code == 0, done.output
    assert [command.split()[0] for command in engines(project)] == runs
    assert json.loads(done.stdout)["result"] == "succeeded"
    assert not digests.keys() & json.loads(done.stdout)["outputs"].keys() or runs != ["preview"]


def test_the_summary_has_the_outputs_that_are_not_secret(project: Project) -> None:
    secret = {
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
        "ciphertext": "x",
    }
    root = {"type": "pulumi:pulumi:Stack", "outputs": {"berths": "alice", "environment": secret}}
    step = {
        "op": "same",
        "urn": "urn:x::root",
        "type": "pulumi:pulumi:Stack",
        "old": root,
        "new": root,
    }
    project.plans("noop", {"resOutputsEvent": {"metadata": step}})
    assert json.loads(berth("up", "--yes", "--json").stdout)["outputs"] == {"berths": "alice"}
    assert "  berths: alice\n" in berth("up", "--yes").stdout


def test_wrong_settings_end_the_preview_that_has_begun(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine starts while the settings are read."""

    def late(stack: str) -> CheckedStack:
        # A Python that starts, such as the one in Pulumi's place, may swallow an interrupt.
        eventually(lambda: engines(project) != [], "the engine has begun")
        return check_stack(stack)

    monkeypatch.setattr(plan, "check_stack", late)
    project.set("fleet", environment={"zoen": "us-central1-b"})
    project.says(waits=True)
    earlier = set(psutil.Process().children())  # of other tests in this process
    done = berth("up", "--yes")
    assert (done.exit_code, "unknown key 'zoen'" in done.stderr) == (2, True)
    eventually(
        lambda: all(
            one.status() == psutil.STATUS_ZOMBIE for one in {*psutil.Process().children()} - earlier
        ),
        "the engine has ended",
    )
    assert not [command for command in engines(project) if command.startswith("up")]


def test_what_is_refused_runs_no_update(project: Project) -> None:
    project.plans("driver")
    done = berth("up", "--yes", "--json")
    assert (done.exit_code, json.loads(done.stdout)["result"]) == (3, "refused")
    assert [command.split()[0] for command in engines(project)] == ["preview"]


def test_a_failed_update_says_what_failed_and_no_command_that_fails_again(project: Project) -> None:
    project.plans("noop", *errors("no quota", "update failed"), code_of_update=1)
    done = berth("up", "--yes")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("\nerror: no quota\n")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_engine_and_then_the_command(
    project: Project, sent: signal.Signals
) -> None:
    """Here without a terminal, which would send Ctrl-C to Pulumi itself."""
    project.says({"resourcePreEvent": {"metadata": {"op": "create", "urn": "x"}}}, waits=True)
    before = signal.getsignal(sent)
    with Interrupts() as interrupts:
        engine = EngineRun(["up"])
        outcome = engine.outcome(
            lambda _: os.kill(os.getpid(), sent) if not interrupts.count else None, interrupts
        )
    assert (outcome.code, interrupts.count) == (1, 1)
    assert interrupts.code == {signal.SIGINT: 130, signal.SIGTERM: 143}[sent]
    assert signal.getsignal(sent) == before


def test_an_interrupt_of_a_preview_ends_the_command(project: Project) -> None:
    project.says(waits=True)
    commands = project.folder / "commands"

    def interrupt() -> None:
        eventually(
            lambda: commands.exists() and "preview" in commands.read_text(), "the preview runs"
        )
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = berth("up", "--yes")
    thread.join()
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(("verb", "says"), [("up", False), ("destroy", True)])
def test_an_interrupted_update_says_how_to_go_on(
    verb: str,
    says: bool,
    project: Project,
) -> None:
    project.plans("engineer-removed")
    program = project.folder / "bin" / "pulumi"
    kill = f"""if "--skip-preview" in arguments:
    os.kill({os.getpid()}, signal.SIGTERM)
    answer["waits"] = True
"""
    program.write_text(program.read_text().replace("while answer", f"{kill}while answer"))
    done = berth(verb, "--yes", "--allow-destroy", "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["result"], document["errors"]) == (
        143,
        "interrupted",
        ["update canceled"],
    )
    assert f"go on with: berth {verb} -s fleet\n" in done.stderr
    assert (
        "pulumi refresh -s fleet --yes --clear-pending-creates, then berth up -s fleet"
        in done.stderr
    ) == says


def test_an_update_that_is_interrupted_before_the_engine_says_a_word_reports_no_error(
    project: Project,
) -> None:
    project.plans("engineer-removed")
    program = project.folder / "bin" / "pulumi"
    kill = f"""if "--skip-preview" in arguments:
    os.kill({os.getpid()}, signal.SIGTERM)
    sys.exit(255)
"""
    program.write_text(
        program.read_text().replace("for line in answer", f"{kill}for line in answer")
    )
    done = berth("up", "--yes", "--allow-destroy", "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["result"], document["errors"]) == (143, "interrupted", [])
    assert "error" not in done.stderr
    assert "stack fleet was interrupted" in done.stderr


def test_a_destruction_of_a_pool_that_gke_does_not_end_says_what_to_look_at(
    project: Project,
) -> None:
    """Nothing but berth says it: `pulumi destroy` runs no program, and so no hook of the pool."""
    project.plans("engineer-removed")
    error = "Error waiting for deleting GKE NodePool: timeout while waiting for state"
    event = json.dumps({"diagnosticEvent": {"severity": "error", "message": error}})
    program = project.folder / "bin" / "pulumi"
    fails = f"""if "--skip-preview" in arguments:
    print({event!r})
    sys.exit(255)
"""
    program.write_text(
        program.read_text().replace("for line in answer", f"{fails}for line in answer")
    )
    done = berth("destroy", "--yes", "--allow-destroy")
    assert done.exit_code == 1
    assert "gcloud container operations list" in done.stderr


def changes(operation: Operation, berths: int, *others: Operation) -> Report:
    """A plan that does something to some berths, and to other things."""

    def part(title: str, parent: str, operation: Operation) -> ComponentChanges:
        urn = f"urn:pulumi:fleet::berth::{parent}kubernetes:core/v1:Namespace::{title}"
        change = ResourceChange(
            title, "namespace", title, "", urn, "x", operation, Level.HARMLESS, (), ()
        )
        return ComponentChanges(title, [change])

    parts = [part(f"berth {number}", f"{BERTH}$", operation) for number in range(berths)]
    parts += [part(f"other {number}", "", other) for number, other in enumerate(others)]
    return replace(report_of(plan_of([]), PreviewContext("fleet", "environment")), parts=parts)


@pytest.mark.parametrize(
    ("report", "verb", "state", "expected"),
    [
        (changes("create", MANY - 1, "create"), "up", "file", ["all"]),
        (changes("create", MANY - 1), "up", "https", ["all"]),
        (changes("create", 1), "up", "gs", ["all"]),
        (changes("create", 2), "up", "gs", ["the rest", "berths"]),
        (changes("delete", 2), "destroy", "s3", ["berths", "all"]),
        (changes("create", MANY, "create"), "up", "file", ["the rest", "berths"]),
        (changes("create", MANY), "up", "file", ["the rest", "berths"]),
        (changes("delete", MANY, "update"), "up", "file", ["the rest", "berths"]),
        (changes("update", 3 * MANY), "up", "gs", ["all"]),
        (changes("delete", MANY, "delete"), "up", "gs", ["all"]),
        (changes("create", MANY, "replace"), "up", "gs", ["all"]),
        (changes("delete", MANY, "delete"), "destroy", "file", ["berths", "all"]),
        (changes("delete", 3, "delete"), "destroy", "file", ["all"]),
    ],
)
def test_many_berths_have_a_run_of_their_own(
    report: Report, verb: Verb, state: str, expected: list[str]
) -> None:
    """Resources that berths depend on come before them, and go after them."""
    found = []
    for arguments, variables in runs_of(report, verb, lambda: f"{state}://state"):
        options = " ".join(arguments)
        kind = (
            "berths" if "--target" in options else "the rest" if "--exclude" in options else "all"
        )
        # Only a run that makes nothing but berths may do without the state in between.
        assert ("PULUMI_SKIP_CHECKPOINTS" in variables) == (kind == "berths")
        assert ("BERTH_NO_WAIT" in variables) == (kind == "the rest")
        found.append(kind)
    assert found == expected


def created() -> tuple[Report, list[Event]]:
    """A recorded plan that makes a fleet, and its events as an update would have them."""
    plan = recorded("create")
    begun = [event for event in plan if "resourcePreEvent" in event]
    ended = [{"resOutputsEvent": event["resourcePreEvent"]} for event in begun]
    return report_of(plan_of(plan), PreviewContext("fleet", "environment")), [*begun, *ended]


def test_components_are_done_when_all_their_resources_are() -> None:
    report, events = created()
    ticks = iter(range(10_000))
    tracker = Tracker(report, lambda: float(next(ticks)))
    for event in events:
        tracker.see(event)
    for part in report.parts:
        component = tracker.components[part.title]
        assert (component.planned, len(component.done)) == (len(part.changes), len(part.changes))
        assert component.complete
        assert component.seconds > 0
    assert tracker.counts == {key: count for key, count in report.counts.items() if count}, (
        "plan and summary count alike"
    )


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
        tracker.see(event)
    component = tracker.components[report.parts[0].title]
    assert (component.failed, component.complete) == (True, False)
    assert tracker.errors == [f"{report.parts[0].title}: no quota"]
    assert events


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2 of 3 pods ready", "2 of 3 pods ready"),
        ("waiting for the KubeRay operator", "waiting for the KubeRay operator"),
        ("", ""),
        ("Resource scheduled for deletion", ""),
        ("Skipping await logic", ""),
        ("✅ Service initialization complete", ""),
        ("Deployment is available. Replicas: 2", ""),
        ("Service is ready", ""),
        ("Available: 1/5", "1 of 5 pods ready"),
        (
            "Waiting for app ReplicaSet to be available (0/1 Pods available)",
            "0 of 1 pods ready",
        ),
        ("[1/3] Finding Pods to direct traffic to", "waits for its pods"),
        (
            "Retry #1; creation failed: no matches for kind RayCluster",
            "not created yet, and tried again: no matches for kind RayCluster",
        ),
        ("admission webhook refuses the object", "admission webhook refuses the object"),
    ],
)
def test_what_is_waited_for_is_shown_and_no_news_of_the_plugin(text: str, shown: str) -> None:
    tracker = Tracker(created()[0], lambda: 0.0)
    tracker.see(
        {
            "diagnosticEvent": {
                "severity": "info#err",
                "ephemeral": True,
                "message": text,
                "urn": "x::bob",
            }
        }
    )
    assert tracker.waiting == ({"bob": shown} if shown else {})


def lost(name: str, stack: str, running: CurrentWork, *, suspended: bool = False) -> Loss:
    metadata = {"name": name, "namespace": f"berth-{name}", "labels": {STACK_LABEL: stack}}
    cluster = {
        "metadata": metadata,
        "spec": {"suspend": suspended},
        "status": {"state": "suspended"},
    }
    return Loss(
        LiveBerth(name, cast("LiveEnvironment", None), cast("ClusterApi", None), cluster), running
    )


def test_what_is_lost_is_said_with_what_runs() -> None:
    job = RunningJob("raysubmit_1", "job", "RUNNING", "python train.py", 1.0)
    busy = lost("alice", "alice", CurrentWork([job], pods=3))
    note = "it has no head pod, so nothing runs on it"
    asleep = lost("bob", "env", CurrentWork(pods=0, note=note), suspended=True)
    assert str(busy).endswith(
        ", 3 pods, of stack alice; job raysubmit_1 (running): python train.py"
    )
    assert str(asleep) == f"bob: suspended, 0 pods, of stack env; {note}"
