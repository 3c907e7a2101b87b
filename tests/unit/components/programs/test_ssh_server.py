"""SSH server in a container: its configuration, and images that cannot have one."""

import shutil
from pathlib import Path

import pytest

from berth.components.programs import ssh_server

FOLDER = Path("/run/x")


def test_a_session_gets_the_environment_of_the_container() -> None:
    variables = {
        "PATH": "/opt/bin:/bin",
        "RAY_AUTH_TOKEN": 'a "b" \\c',
        "HOME": "/root",
        "TWO": "a\nb",
    }
    text = ssh_server.sshd_configuration(FOLDER, variables)
    assert 'SetEnv "PATH=/opt/bin:/bin" "RAY_AUTH_TOKEN=a \\"b\\" \\\\c"\n' in text
    assert text.count("SetEnv") == 1, "sshd takes the first line alone"
    assert "HostKey /run/x/host\n" in text


def test_only_the_key_of_the_caller_opens_the_server() -> None:
    lines = ssh_server.sshd_configuration(FOLDER, {}).splitlines()
    assert {
        "AuthenticationMethods publickey",
        "AuthorizedKeysFile /run/x/authorized_keys",
        "UsePAM no",
    } <= set(lines)
    assert not any(line.startswith("SetEnv") for line in lines)


def test_an_image_without_sshd_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name, **_: None)
    assert ssh_server.serve_connection("ssh-ed25519 AAAA") == ssh_server.MISSING
    assert "the image has no sshd: install openssh-server in it" in capsys.readouterr().err
