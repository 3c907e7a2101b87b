"""`berth notebook`, with a kubectl that runs the head's commands on this machine."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.cli.reach import port_forwarding
from berth.cli.verbs.notebook import server
from berth.components.core.errors import BerthError
from tests.unit.components.programs.jupyter import write_jupyter

KUBECTL = """#!{python}
import os, sys, time
words = sys.argv[3:]
if words[0] == "exec":
    command = words[words.index("--") + 1:]
    os.execvp(command[0], command)
local, _, remote = words[-1].partition(":")
print(f"Forwarding from 127.0.0.1:{{local}} -> {{remote}}", flush=True)
time.sleep(600)
"""


def pod(uid: str) -> dict[str, Any]:
    return {"metadata": {"name": f"head-{uid}", "uid": uid}}


@pytest.fixture
def berth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Berth whose head is this machine; its connection breaks at once, as often as `heads` says."""
    write_jupyter(tmp_path / "packages")
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL.format(python=sys.executable))
    program.chmod(0o755)
    for name in ("tmp", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    for name, value in {"TMPDIR": "tmp", "HOME": "home", "PYTHONPATH": "packages"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    found = SimpleNamespace(
        name="alice",
        namespace="berth-alice",
        environment=SimpleNamespace(kubeconfig="{}"),
        heads=[],
        marks=[],
        between=lambda: None,
    )

    @contextlib.contextmanager
    def marked(_berth: object) -> Iterator[None]:
        found.marks.append("open")
        try:
            yield
        finally:
            found.marks.append("closed")

    def watch(*_: object) -> None:
        found.between()
        if not found.heads:
            raise KeyboardInterrupt

    monkeypatch.setattr(server, "live_berth", lambda *_: found)
    monkeypatch.setattr(server, "ready_head", lambda _berth: pod("1"))
    monkeypatch.setattr(server, "marked_as_used", marked)
    monkeypatch.setattr(port_forwarding, "_watch", watch)
    monkeypatch.setattr(port_forwarding, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(port_forwarding, "_next_head", lambda _berth: pod(found.heads.pop(0)))
    yield found
    call("--stop")


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["notebook", "alice", "--python", sys.executable, *words])


def documents(done: Result) -> list[dict[str, Any]]:
    texts = done.stdout.replace("}\n{", "}\0{").split("\0")
    return [json.loads(text) for text in texts]


def test_jupyter_is_opened_once_and_outlives_the_command(
    berth: SimpleNamespace, tmp_path: Path
) -> None:
    first = call("--json")
    again = call("--json")
    assert (first.exit_code, again.exit_code) == (0, 0), first.output
    (one,), (other,) = documents(first), documents(again)
    assert one["token"] == other["token"]
    assert one["folder"] == str(tmp_path / "home")
    assert one["url"].endswith(f"/?token={one['token']}")
    assert berth.marks == ["open", "closed"] * 2
    assert "berth notebook alice --stop ends them" in first.stderr
    assert json.loads(call("--stop", "--json").stdout)["stopped"] is True
    assert "alice has no notebook" in call("--stop").stderr


def test_people_get_the_address(berth: SimpleNamespace) -> None:
    assert berth.name == "alice"
    done = call()
    assert "notebook   http://127.0.0.1:" in done.stdout
    assert "Ctrl-C ends the connection" in done.stderr


def test_a_new_head_gets_a_new_server_and_a_broken_connection_does_not(
    berth: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    berth.heads = ["1", "2"]
    (tmp_path / "tmp2").mkdir()

    def between() -> None:
        if berth.heads == ["2"]:
            monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp2"))

    berth.between = between
    done = call("--json")
    assert done.exit_code == 0, done.output
    one, other = documents(done)
    assert one["token"] != other["token"]
    assert one["url"].partition("/?")[0] == other["url"].partition("/?")[0], (
        "the browser's tab finds the new server"
    )
    assert "connected again" in done.stderr
    assert "the kernels of the last one are gone" in done.stderr
    call("--stop")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))


def test_a_server_that_somebody_stopped_stays_stopped(berth: SimpleNamespace) -> None:
    berth.heads = ["1"]
    berth.between = lambda: call("--stop")
    done = call()
    assert (done.exit_code, "the notebook of alice was stopped" in done.stderr) == (1, True)


def test_an_image_without_jupyter_says_what_to_install(
    berth: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    done = call()
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"the head of {berth.name} has no Jupyter for {sys.executable}" in done.stderr
    assert f"berth exec alice -- {sys.executable} -m pip install jupyterlab" in done.stderr
    assert berth.marks == ["open", "closed"]


def test_a_program_that_is_not_python_is_named(berth: SimpleNamespace) -> None:
    assert berth.name == "alice"
    done = CliRunner().invoke(app, ["notebook", "alice", "--python", "echo"])
    assert (done.exit_code, "echo in the head of alice is not Python" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--stop", "--port", "8888"), "exclude each other"),
        (("--port", "0"), "'0' is not a whole number from 1 to 65535"),
    ],
)
def test_arguments_that_cannot_be_are_bad_input(
    berth: SimpleNamespace, words: tuple[str, ...], problem: str
) -> None:
    done = call(*words)
    assert (done.exit_code, problem in done.stderr, berth.marks) == (2, True, [])


def test_a_berth_that_is_not_ready_has_no_notebook(
    berth: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def suspended(_berth: object) -> None:
        raise BerthError("alice is suspended; bring it back with: berth wake alice")

    with monkeypatch.context() as patched:
        patched.setattr(server, "ready_head", suspended)
        done = call()
    assert (done.exit_code, "berth wake alice" in done.stderr, berth.marks) == (1, True, [])
