"""Hosts of berths in the user's configuration of ssh, and the command that connects them."""

import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.reach.ssh import SshTarget, ssh_options
from berth.cli.reach.ssh_config import add_host


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home without a configuration of ssh, and a project with one stack."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    project = tmp_path / "a project's"
    (project / "stacks").mkdir(parents=True)
    (project / "Pulumi.yaml").write_text("name: berth\n")
    (project / "stacks" / "Pulumi.lab.yaml").write_text(
        "config: {'berth:environment': {engineers: {alice: {}}}}\n"
    )
    monkeypatch.chdir(project)
    return folder


def read(home: Path, name: str) -> str:
    return (home / ".ssh" / name).read_text()


def resolved(home: Path, host: str) -> dict[str, str]:
    """Return what OpenSSH itself makes of a host."""
    ssh = shutil.which("ssh")
    assert ssh is not None, "the tests need OpenSSH's client"
    # OpenSSH asks the password database for the home, not the environment.
    file = home / "whole"
    file.write_text(read(home, "config").replace("Include berth/", f"Include {home}/.ssh/berth/"))
    text = subprocess.run(
        [ssh, "-F", str(file), "-G", host], capture_output=True, text=True, check=True
    ).stdout
    return dict(line.partition(" ")[::2] for line in text.splitlines())


def test_a_berth_becomes_a_host_beside_those_of_the_user(home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "config").write_text("Host work\n    User me\n")
    for _ in range(2):
        done = CliRunner().invoke(app, ["ssh-config", "alice"])
        assert done.exit_code == 0, done.output
    assert read(home, "config") == "Include berth/config\n\nHost work\n    User me\n"
    assert read(home, "berth/config").count("Host berth-alice\n") == 1
    assert stat.S_IMODE((home / ".ssh" / "berth" / "id_ed25519").stat().st_mode) == 0o600
    found = resolved(home, "berth-alice")
    assert (found["user"], found["stricthostkeychecking"]) == ("ray", "false")
    assert resolved(home, "work")["user"] == "me"


def test_the_transport_starts_in_the_project_whatever_its_folder_is_called(home: Path) -> None:
    words = shlex.split(ssh_options(SshTarget("alice", "lab", worker="2"))["ProxyCommand"])
    assert words[:2] == ["sh", "-c"]
    where, _, command = words[2].partition(" && exec ")
    assert shlex.split(where) == ["cd", str(home.parent / "a project's")]
    assert shlex.split(command)[1:] == [
        "ssh",
        "alice",
        "--stack",
        "lab",
        "--proxy",
        "--worker",
        "2",
    ]


def test_hosts_are_added_and_removed_one_by_one(home: Path) -> None:
    for worker in (None, "1"):
        add_host(SshTarget("alice", "lab", worker))
    assert CliRunner().invoke(app, ["ssh-config", "alice", "--remove"]).exit_code == 0
    assert "Host berth-alice-worker-1\n" in read(home, "berth/config")
    assert "Host berth-alice\n" not in read(home, "berth/config")
    again = CliRunner().invoke(app, ["ssh-config", "alice", "--remove"])
    assert "there was no host berth-alice" in again.output


def test_a_printed_host_changes_no_file(home: Path) -> None:
    done = CliRunner().invoke(app, ["ssh-config", "alice", "--print"])
    assert done.stdout.startswith("Host berth-alice\n    HostName berth-alice\n    User ray\n")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["ssh-config", "alice", "--print", "--remove"], 2, "exclude each other"),
        (["ssh-config", "alic"], 2, "alice"),
        (
            ["code", "alice", "--editor", "no-such-editor"],
            1,
            "vscode://vscode-remote/ssh-remote+berth-alice/home/ray",
        ),
    ],
)
def test_what_cannot_work_is_said(home: Path, arguments: list[str], code: int, words: str) -> None:
    assert home.is_dir()
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, words in done.output) == (code, True), done.output
