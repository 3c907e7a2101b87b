"""Jupyter in a head: started once, private, stopped; with a small server in Jupyter's place.

tests/real/test_notebook.py has the real one.
"""

import http.client
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.components.programs import notebook
from tests.unit.components.programs.jupyter import write_jupyter


class Head:
    """Container of a head, as far as the program sees it."""

    def __init__(self, folder: Path, packages: Path) -> None:
        self.state = folder / f"berth-notebook-{os.getuid()}"
        self.env = {
            **os.environ,
            "TMPDIR": str(folder),
            "PYTHONPATH": str(packages),
            "JUPYTER_TOKEN": "another",
        }

    def ask(self, verb: str, home: str = "/") -> dict[str, Any]:
        text = Path(notebook.__file__).read_text()
        command = [sys.executable, "-c", text, verb, home]
        done = subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=60, check=True
        )
        return dict(json.loads(done.stdout))


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    write_jupyter(tmp_path / "packages")
    (tmp_path / "tmp").mkdir()
    head = Head(tmp_path / "tmp", tmp_path / "packages")
    yield head
    head.ask("stop")


def status(server: dict[str, Any], token: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server["port"], timeout=60)
    connection.request("GET", "/api/status", headers={"Authorization": f"token {token}"})
    return connection.getresponse().status


def test_a_server_runs_on_until_it_is_stopped(head: Head, tmp_path: Path) -> None:
    assert head.ask("find") == {}
    assert head.ask("stop") == {"stopped": False}
    server = head.ask("start", str(tmp_path))
    assert (server["folder"], server["page"]) == (str(tmp_path), "/")
    assert (status(server, server["token"]), status(server, "another")) == (200, 403)
    assert head.ask("start", str(tmp_path)) == server
    assert head.ask("find") == server
    assert head.ask("stop") == {"stopped": True}
    assert head.ask("find") == {}


def test_the_token_is_in_files_of_the_user_alone(head: Head) -> None:
    token = head.ask("start")["token"].encode()
    holders = {path.name for path in head.state.iterdir() if token in path.read_bytes()}
    assert holders == {"server.json", "token"}
    assert {stat.S_IMODE((head.state / name).stat().st_mode) for name in holders} == {0o600}
    assert stat.S_IMODE(head.state.stat().st_mode) == 0o700
    seen = [
        path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if os.access(path, os.R_OK)
    ]
    assert not any(token in arguments for arguments in seen)


def test_two_calls_at_once_start_one_server(head: Head) -> None:
    found: list[dict[str, Any]] = []
    calls = [threading.Thread(target=lambda: found.append(head.ask("start"))) for _ in range(2)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert found[0] == found[1]


def test_an_image_without_jupyter_is_named(head: Head) -> None:
    head.env["PYTHONPATH"] = ""
    assert head.ask("start") == {"missing": sys.executable}


def test_the_words_of_a_jupyter_that_ends_are_kept(head: Head, tmp_path: Path) -> None:
    (tmp_path / "packages" / "jupyter_server" / "__main__.py").write_text(
        "raise SystemExit('no such setting')"
    )
    assert head.ask("start") == {"failed": "Jupyter ended at its start: no such setting"}
    assert head.ask("find") == {}


def test_a_folder_that_others_can_write_to_is_refused(head: Head) -> None:
    head.state.mkdir()
    head.state.chmod(0o777)
    assert "others can write to" in head.ask("start")["failed"]
    head.state.chmod(0o700)


@pytest.mark.parametrize(("module", "page"), [("notebook", "/tree"), ("jupyterlab", "/lab")])
def test_the_page_is_that_of_the_package_that_is_there(
    head: Head, tmp_path: Path, module: str, page: str
) -> None:
    (tmp_path / "packages" / f"{module}.py").touch()
    assert head.ask("start")["page"] == page
