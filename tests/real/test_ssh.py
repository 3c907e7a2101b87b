"""SSH with the real client and a real server: a shell's command, copies, and the keeper's view."""

import os
import shutil
from pathlib import Path

import pytest

from berth.components.programs.logins import OPEN_UNTIL
from tests.lab.project import started
from tests.real.conftest import RealNode, eventually

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.fixture
def home(tmp_path: Path, real: RealNode, alice: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home of a user in whose configuration of ssh the berth is a host."""
    monkeypatch.setenv("HOME", str(tmp_path))
    real.project.run("berth", "ssh-config", alice)
    # OpenSSH asks the password database for the home, not the environment: `-F` names the file.
    return tmp_path / ".ssh" / "berth" / "config"


def marks(real: RealNode, owner: str) -> dict[str, str]:
    (cluster,) = real.project.get("rayclusters", "-n", f"berth-{owner}")
    return dict(cluster["metadata"].get("annotations") or {})


def test_a_command_runs_as_the_containers_user_with_its_environment(
    real: RealNode, alice: str, home: Path
) -> None:
    assert home.is_file()
    done = real.project.run(
        "berth", "ssh", alice, "--", "id -un; command -v ray; exit 7", check=False
    )
    assert (done.returncode, done.stdout.split()) == (7, ["ray", "/home/ray/anaconda3/bin/ray"]), (
        done.stderr
    )
    listed = real.project.run(
        "berth", "ssh", alice, "--", "ray", "job", "list", "--address=http://127.0.0.1:8265"
    )
    assert "Unauthorized" not in listed.stdout + listed.stderr
    assert OPEN_UNTIL not in marks(real, alice), "no login is open any more"
    assert real.on_head(
        alice, "sh", "-c", "ls -d /tmp/berth-ssh-* 2>/dev/null || echo none"
    ).stdout.split() == ["none"]


def test_files_are_copied_by_scp_and_rsync(
    real: RealNode, alice: str, home: Path, tmp_path: Path
) -> None:
    assert shutil.which("scp"), "the tests need OpenSSH's client"
    content = os.urandom(3_000_000)
    (tmp_path / "data").write_bytes(content)
    real.project.run("scp", "-q", "-F", str(home), str(tmp_path / "data"), f"berth-{alice}:data")
    real.project.run("scp", "-q", "-F", str(home), f"berth-{alice}:data", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content


def test_an_open_login_holds_up_a_suspension(real: RealNode, alice: str, home: Path) -> None:
    with started(
        real.project, "ssh", "-F", str(home), f"berth-{alice}", "echo in; sleep 600"
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        eventually(lambda: OPEN_UNTIL in marks(real, alice), "the login is marked")
        real.project.run("berth", "status", "-s", alice)
        refused = real.project.run("berth", "suspend", alice, check=False)
        assert refused.returncode != 0
        assert "an open login" in refused.stderr
        assert process.poll() is None, "the login survives"
        process.terminate()
    eventually(lambda: OPEN_UNTIL not in marks(real, alice), "the mark is gone")


def test_a_worker_is_reached_too(real: RealNode, alice: str, home: Path) -> None:
    assert home.is_file()
    done = real.project.run("berth", "ssh", alice, "--worker", "1", "--", "hostname")
    workers = real.project.get("pods", "-n", f"berth-{alice}", "-l", "ray.io/node-type=worker")
    assert done.stdout.strip() in {worker["metadata"]["name"] for worker in workers}
