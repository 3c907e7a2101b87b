"""`berth exec`: the pod that is meant, and kubectl's command line."""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.cli.reach import berths, logins, pods


def pod(name: str) -> dict[str, Any]:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": {}}, "spec": {}, "status": ready}


PODS = {"head": [pod("head")], "worker": [pod("cpu-a"), pod("gpu-a")]}


@pytest.fixture
def berth(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(
        name="alice",
        namespace="berth-alice",
        environment=SimpleNamespace(kubeconfig="{}"),
        pods=PODS.__getitem__,
        is_simulated=lambda _pod: False,
        suspension_note=lambda: "",
        asked=[],
    )

    def attached(*words: str) -> int:
        found.asked.append(words)
        return 7

    @contextlib.contextmanager
    def program(_kubeconfig: str) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(attached=attached)

    monkeypatch.setattr(berths, "live_berth", lambda *_: found)
    monkeypatch.setattr(logins, "kubectl", program)
    monkeypatch.setattr(logins, "marked_as_used", lambda _berth: contextlib.nullcontext())
    monkeypatch.setattr(pods, "ready_head", lambda _berth: PODS["head"][0])
    return found


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["exec", "alice", *words])


@pytest.mark.parametrize(
    ("options", "name", "container"),
    [
        ([], "head", "ray-head"),
        (["--worker", "1"], "cpu-a", "ray-worker"),
        (["--worker", "2"], "gpu-a", "ray-worker"),
    ],
)
def test_the_command_runs_in_the_container_that_is_meant(
    berth: SimpleNamespace, options: list[str], name: str, container: str
) -> None:
    assert call(*options, "--", "nvidia-smi", "-L").exit_code == 7
    where = ("--namespace", "berth-alice", name, "--container", container)
    assert berth.asked == [("exec", "--stdin", *where, "--", "nvidia-smi", "-L")]


def test_without_a_command_it_is_a_shell(berth: SimpleNamespace) -> None:
    call()
    assert berth.asked[0][-2:] == ("--", "bash")


@pytest.mark.parametrize(
    ("worker", "problem"),
    [("0", "'0' is neither a number from 1 on nor GROUP/NUMBER"), ("4", "there is no worker 4")],
)
def test_a_worker_that_is_not_there_is_bad_input(
    berth: SimpleNamespace, worker: str, problem: str
) -> None:
    done = call("--worker", worker, "--", "true")
    assert (done.exit_code, problem in done.stderr, berth.asked) == (2, True, [])


def test_no_container_runs_on_a_simulated_node(berth: SimpleNamespace) -> None:
    berth.is_simulated = lambda _pod: True
    done = call("--worker", "1", "--", "true")
    assert (done.exit_code, "cpu-a is on a simulated node" in done.stderr) == (1, True)
