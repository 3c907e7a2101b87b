"""Output of every command that cannot do its work: one clear error on stderr, nothing on
stdout, and its exit code.
"""

import re
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import yaml
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.cli.pulumi.engine import Outcome
from berth.cli.pulumi.preview import plan
from berth.cli.pulumi.stack import stacks_in_backend
from berth.cli.reach import berths, fleet
from berth.cli.reach.environment import LiveEnvironment
from berth.cli.verbs import lab
from berth.cli.verbs.status import live_view
from berth.cli.verbs.verify import fabric_proof
from berth.components.plan.plan import Event
from tests.lab.project import eventually
from tests.unit.cases import table
from tests.unit.loaded import environment_of
from tests.unit.recorded_cluster import RecordedCluster

BAD_INPUT = 2
NOT_ASKED = 1

SITUATIONS = table(__file__, "failures.yaml")["situations"]
OFFLINE = SITUATIONS["a backend that cannot be reached"]["pulumi"]

ENVIRONMENT = """\
config:
  berth:environment:
    project: berth-lab
    zone: us-central1-b
    pools:
      cpu: {machineType: n2-standard-16, nodes: 1}
      dev: {machineType: g2-standard-48, nodes: 1}
    engineers:
      bob: {}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    for stack, text in {
        "env": ENVIRONMENT,
        "alice": "config:\n  berth:engineer: {environment: env}\n",
        "lost": "config:\n  berth:engineer: {environment: envy}\n",
        "broken": "config: [\n",
    }.items():
        (tmp_path / f"stacks/Pulumi.{stack}.yaml").write_text(text)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pulumi(project: Path, says: str) -> None:
    """A pulumi that only says so, and fails."""
    program = project / "bin/pulumi"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = version ] && echo v3.250.0 && exit\necho "error: {says}" >&2\nexit'
        " 255\n"
    )
    program.chmod(0o755)


def berth(command: str, stack: str) -> Result:
    return CliRunner().invoke(app, [*command.split(), stack])


def error_of(done: Result, code: int) -> str:
    """Return the one error of a command, in one piece."""
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert len(re.findall(r"^(error:|✗)", done.stderr, flags=re.MULTILINE)) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("situation", "command"),
    [
        (name, command)
        for name, case in SITUATIONS.items()
        for commands in case["commands"]
        for command in commands
    ],
)
def test_the_one_error(project: Path, situation: str, command: str) -> None:
    case = SITUATIONS[situation]
    if "pulumi" in case:
        pulumi(project, case["pulumi"])
    output = error_of(berth(command, case["named"]), case.get("code", BAD_INPUT))
    assert [words for words in case["says"] if words not in output] == []


@pytest.fixture
def nobody(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment is up, and nobody's berth is."""
    values = yaml.safe_load(ENVIRONMENT)["config"]["berth:environment"]
    contract = environment_of("env", values).contract()
    for module in (berths, fleet, live_view, fabric_proof):
        monkeypatch.setattr(
            module, "brought_up", lambda _stack: LiveEnvironment("env", contract, "")
        )
        monkeypatch.setattr(module, "ClusterApi", lambda _kubeconfig: RecordedCluster())
    return project


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("command", ["connect", "logs", "suspend", "wake"])
@pytest.mark.parametrize(
    ("berth_of", "stack"), [("bob", "env"), ("alice", "alice"), ("alice -s env", "alice")]
)
def test_a_berth_that_is_not_up_yet(command: str, berth_of: str, stack: str) -> None:
    name, *options = berth_of.split()
    output = error_of(berth(f"{command} {' '.join(options)}", name), BAD_INPUT)
    assert (
        f"{name} is in the settings of stack {stack}, but not up on environment env; run: berth up"
        f" -s {stack}" in output
    )


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("command", ["status -s", "status --json -s", "status --watch -s"])
def test_the_status_of_a_stack_that_is_not_up(command: str) -> None:
    output = error_of(berth(command, "alice"), BAD_INPUT)
    assert output == "error: stack alice is not up on environment env; run: berth up -s alice"


@pytest.mark.usefixtures("nobody")
def test_the_fabric_of_a_berth_that_is_not_up() -> None:
    output = error_of(berth("verify fabric -s", "alice"), BAD_INPUT)
    assert (
        "alice is in the settings of stack alice, but not up on environment env; run: berth up -s"
        " alice" in output
    )


def test_a_diagnosis_without_a_network_says_so_once(project: Path) -> None:
    pulumi(project, OFFLINE)
    done = berth("diagnose -o report.md", "bob")
    assert done.exit_code == NOT_ASKED
    report = (project / "report.md").read_text()
    assert report.count("cannot reach its state backend") == 1
    assert "- Plan of stack env: not made, for the same reason" in report


def test_a_plan_without_a_network_says_what_could_not_be_reached(project: Path) -> None:
    lost = "dial tcp: lookup get.pulumi.com: no such host"
    pulumi(project, f"Could not automatically download resource plugin pulumi-resource-gcp: {lost}")
    output = error_of(berth("preview -s", "env"), NOT_ASKED)
    assert "Pulumi cannot download a plugin: Could not automatically download" in output
    assert "state backend" not in output


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    ("messages", "begins"),
    [
        (
            ['Get "https://container.googleapis.com": dial tcp: no such host'],
            "Pulumi needs a connection that failed: ",
        ),
        (
            ["dial tcp: no such host", "pool dev: quota exceeded"],
            "dial tcp: no such host\npool dev",
        ),
    ],
)
def test_a_plan_fails_for_the_network_only_if_nothing_else_failed(
    monkeypatch: pytest.MonkeyPatch, messages: list[str], begins: str
) -> None:
    events: list[Event] = [
        {"diagnosticEvent": {"message": message, "severity": "error"}} for message in messages
    ]
    engine = SimpleNamespace(outcome=lambda *_: Outcome(events, code=255))
    monkeypatch.setattr(plan, "begun_preview", lambda *_: engine)
    monkeypatch.setattr("berth.cli.pulumi.stack.settings_of_last_update", lambda _stack: {})
    done = berth("diagnose -o report.md", "bob")
    assert done.exit_code == BAD_INPUT  # the berth is not up
    found = next(
        line
        for line in done.stderr.split("could not be gathered: ")
        if line.startswith("Plan of stack env")
    )
    assert found.startswith(f"Plan of stack env: {begins}")


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    "command", ["connect -s env", "logs -s env", "suspend -s env", "wake -s env", "diagnose -s env"]
)
def test_a_name_that_nobody_has(command: str) -> None:
    assert "environment env has no berth or cluster 'bobb'" in error_of(
        berth(command, "bobb"), BAD_INPUT
    )


def test_a_berth_that_is_not_up_is_diagnosed_all_the_same(nobody: Path) -> None:
    done = berth("diagnose --no-plan -o report.md", "bob")
    assert done.exit_code == BAD_INPUT
    report = (nobody / "report.md").read_text()
    assert "- The berth: bob is in the settings of stack env, but not up" in report
    assert "## Settings of stack env" in report


@pytest.mark.parametrize("command", ["lab status", "lab env"])
def test_a_lab_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """`BERTH_LAB` may name a folder outside of any project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTH_LAB", str(tmp_path / "nowhere"))
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == lab.NOT_RUNNING
    assert str(tmp_path / "nowhere") in done.stderr
    assert "(or `berth lab up`)" in done.stderr
    assert command == "lab env" or not done.stdout


def test_an_interrupt_ends_a_question_to_a_backend_that_hangs(project: Path) -> None:
    program = project / "bin/pulumi"
    program.write_text(f"#!/bin/sh\necho $$ > {project}/pid\nexec /bin/sleep 3600\n")
    program.chmod(0o755)
    main = threading.main_thread().ident or 0
    pid = project / "pid"

    def interrupt() -> None:
        eventually(lambda: pid.exists() and bool(pid.read_text().strip()), "the question is asked")
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        stacks_in_backend()
    thread.join()
    eventually(lambda: not runs(int(pid.read_text())), "the question has ended")


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
