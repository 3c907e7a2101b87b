"""`berth connect`, `logs` and `suspend` where containers run: forwarded ports, Ray's token, jobs
that would be lost.
"""

import json
import os
import signal
import stat
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.project import started
from tests.real.conftest import RealNode, eventually, printed

pytestmark = [pytest.mark.real, pytest.mark.long]

_ANSWER_SECONDS = 10


@pytest.fixture
def connected(real: RealNode, alice: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Running `berth connect`, and the document that it printed."""
    with started(real.project, "berth", "connect", alice, "--json") as process:
        yield process, printed(process)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def ask(connection: dict[str, Any], path: str, token: str = "") -> tuple[int, str]:
    """Status and text of an answer of the forwarded dashboard; 0 while nothing answers."""
    request = urllib.request.Request(connection["dashboard"] + path)  # noqa: S310 - loopback
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310 - loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""


def test_the_dashboard_answers_and_does_so_at_the_next_head(
    real: RealNode, alice: str, connected: tuple[subprocess.Popen[str], dict[str, Any]]
) -> None:
    process, report = connected
    file = Path(report["tokenFile"])
    token = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ask(report, "/api/version")[0] in {401, 403}
    status, text = ask(report, "/api/version", token)
    assert (status, json.loads(text)["ray_version"]) == (200, "2.60.0")
    # Neither of berth nor of kubectl, which others on this machine can see.
    arguments = [
        path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if os.access(path, os.R_OK)
    ]
    assert not any(token.encode() in argument for argument in arguments)
    head = real.head(alice)
    real.lab.run(["kubectl", "delete", "pod", head, "-n", f"berth-{alice}", "--wait=false"])

    def next_answers() -> bool:
        return bool(real.heads(alice) - {head}) and ask(report, "/api/version", token)[0] == 200

    eventually(next_answers, "the next head answers")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    assert not file.exists()


def test_logs_are_the_pods_own(real: RealNode, alice: str) -> None:
    for options in ([], ["--worker", "1"]):
        done = real.lab.run(
            ["berth", "logs", alice, "--tail", "50", *options], cwd=real.project.folder
        )
        assert "ray" in done.stdout.lower()


def test_a_command_runs_in_a_container(real: RealNode, alice: str) -> None:
    for options, kind in ([], "head"), (["--worker", "1"], "worker"):
        command = ["berth", "exec", alice, *options, "--", "sh", "-c", "hostname; exit 7"]
        done = real.lab.run(command, cwd=real.project.folder, check=False)
        assert (done.returncode, kind in done.stdout) == (7, True), done.stderr


def test_a_folder_runs_as_a_job_with_log_and_exit_code(
    real: RealNode, alice: str, tmp_path: Path
) -> None:
    code = (
        "import os, sys, ray, lib\nray.init()\nprint('hello', lib.NAME,"
        " os.environ['GREETING'])\nsys.exit(7)\n"
    )
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "lib.py").write_text("NAME = 'lib'\n")
    submit = ["berth", "submit", alice, "--working-dir", str(tmp_path)]
    options = ["--name", "seven", "--env", "GREETING=hi"]
    done = real.lab.run(
        [*submit, *options, "--", "python", "train.py"], cwd=real.project.folder, check=False
    )
    assert (done.returncode, "hello lib hi" in done.stdout) == (7, True), done.stderr
    again = real.lab.run(
        [*submit, "--no-follow", "--name", "sleeper", "--", "sleep 600"], cwd=real.project.folder
    )
    assert "Ray has the files of" in again.stderr
    stopped = real.lab.run(["berth", "jobs", alice, "sleeper", "--stop"], cwd=real.project.folder)
    assert "stopped" in stopped.stdout
    jobs = json.loads(
        real.lab.run(["berth", "jobs", alice, "--json"], cwd=real.project.folder).stdout
    )
    assert {(job["id"], job["status"], job["exitCode"]) for job in jobs if job["submitted"]} >= {
        ("seven", "FAILED", 7),
        ("sleeper", "STOPPED", None),
    }


def test_a_running_job_is_not_lost_without_consent(
    real: RealNode, alice: str, connected: tuple[subprocess.Popen[str], dict[str, Any]]
) -> None:
    _, report = connected
    token = Path(report["tokenFile"]).read_text()
    address = "--address=http://127.0.0.1:8265"
    real.on_head(
        alice,
        "ray",
        "job",
        "submit",
        address,
        "--no-wait",
        "--submission-id=long",
        "--",
        "sleep",
        "600",
    )

    def runs() -> bool:
        return bool(
            json.loads(ask(report, "/api/jobs/long", token)[1] or "{}").get("status") == "RUNNING"
        )

    eventually(runs, "the job runs")
    for command in (["suspend", alice], ["destroy", "-s", "alice", "--yes"]):
        refused = real.lab.run(["berth", *command], cwd=real.project.folder, check=False)
        assert refused.returncode == 3, refused.stderr
        assert "job long (running): sleep 600" in refused.stderr
    assert runs()
    real.on_head(alice, "ray", "job", "stop", address, "long")
    eventually(lambda: not runs(), "the job has stopped")
    real.lab.run(["berth", "suspend", alice], cwd=real.project.folder)
    assert real.project.get("pods", "-n", f"berth-{alice}") == []
    real.lab.run(["berth", "wake", alice], cwd=real.project.folder)
