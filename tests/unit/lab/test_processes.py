from __future__ import annotations

import graphlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from berth.lab.errors import LabError
from berth.lab.home import Home
from berth.lab.probes import Probe
from berth.lab.processes import MARK, Process, Supervisor, start_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")
SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/healthz" else 500); self.end_headers()
    def log_message(self, *args): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    home = Home(tmp_path / "lab")
    home.run.mkdir(parents=True)
    supervisor = Supervisor(home)
    yield supervisor
    supervisor.stop_all()


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _sleeper(name: str, *needs: str) -> Process:
    return Process(name=name, argv=SLEEPER, purpose="sleeps", needs=needs)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_order_follows_needs() -> None:
    needs = {"scheduler": ["api"], "api": ["etcd"], "etcd": [], "kwok": ["api"], "controller": ["api", "absent"]}
    assert start_order(needs) == [["etcd"], ["api"], ["controller", "kwok", "scheduler"]]


def test_needs_in_a_circle_are_refused() -> None:
    with pytest.raises(graphlib.CycleError):
        start_order({"a": ["b"], "b": ["a"]})


def test_start_and_stop_can_be_repeated(supervisor: Supervisor) -> None:
    processes = [_sleeper("api", "etcd"), _sleeper("etcd")]
    assert supervisor.start(processes) == ["etcd", "api"]
    pids = {name: record.pid for name, record in supervisor.records().items()}
    assert supervisor.start(processes) == []
    assert {name: record.pid for name, record in supervisor.records().items()} == pids
    assert supervisor.stop(["etcd", "api"]) == ["api", "etcd"]
    assert not any(map(psutil.pid_exists, pids.values()))
    assert supervisor.stop(["etcd", "api"]) == []
    assert supervisor.stop_all() == []


def test_a_process_has_its_own_session_and_log(supervisor: Supervisor) -> None:
    argv = (sys.executable, "-c", "import time; print('hello', flush=True); time.sleep(600)")
    supervisor.start([Process(name="talker", argv=argv, purpose="talks")])
    process = supervisor.running("talker")
    assert process is not None
    assert os.getsid(process.pid) == process.pid
    _until(lambda: supervisor.log("talker").read_text() == "hello\n")


def test_a_dead_process_is_started_again(supervisor: Supervisor) -> None:
    supervisor.start([_sleeper("etcd")])
    first = supervisor.records()["etcd"].pid
    os.kill(first, signal.SIGKILL)
    _until(lambda: supervisor.running("etcd") is None)
    assert supervisor.start([_sleeper("etcd")]) == ["etcd"]
    assert supervisor.records()["etcd"].pid != first


def test_a_process_whose_program_changed_is_started_again(supervisor: Supervisor) -> None:
    supervisor.start([_sleeper("etcd")])
    first = supervisor.records()["etcd"].pid
    changed = replace(_sleeper("etcd"), version="2")
    assert supervisor.start([changed]) == ["etcd"]
    assert supervisor.records()["etcd"].pid != first
    assert supervisor.start([changed]) == []


def test_a_reused_pid_is_neither_taken_for_ours_nor_signalled(supervisor: Supervisor) -> None:
    other = subprocess.Popen(SLEEPER)
    try:
        started = psutil.Process(other.pid).create_time() - 3600
        record = {"name": "etcd", "pid": other.pid, "started": started, "needs": []}
        (supervisor.home.run / "etcd.json").write_text(json.dumps(record))
        assert supervisor.running("etcd") is None
        assert supervisor.stop(["etcd"]) == []
        assert supervisor.stop_all() == []
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_stale_or_unreadable_record_is_no_obstacle(supervisor: Supervisor) -> None:
    (supervisor.home.run / "etcd.json").write_text('{"name": "etcd", "pid"')
    (supervisor.home.run / "api.json").write_text('{"name": "api", "pid": 4194300, "started": 1, "needs": []}')
    assert supervisor.running("etcd") is None
    assert supervisor.start([_sleeper("api", "etcd"), _sleeper("etcd")]) == ["etcd", "api"]


def test_what_was_never_recorded_is_found_by_its_mark(supervisor: Supervisor, tmp_path: Path) -> None:
    def marked(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(SLEEPER, env=os.environ | {MARK: f"{folder.resolve()}:etcd"})

    ours, others = marked(supervisor.home.root), marked(tmp_path / "lab2")
    try:
        _until(lambda: [process.pid for process in supervisor.strays()] == [ours.pid])
        assert supervisor.stop_all() == ["unrecorded"]
        assert ours.wait(timeout=20) == -signal.SIGTERM
        assert others.poll() is None
    finally:
        for process in (ours, others):
            process.kill()
            process.wait()


def test_a_recorded_processs_child_is_no_stray_until_it_is_orphaned(supervisor: Supervisor) -> None:
    script = f"import subprocess; subprocess.run({SLEEPER!r})"
    supervisor.start([Process(name="parent", argv=(sys.executable, "-c", script), purpose="has a child")])
    parent = supervisor.running("parent")
    assert parent is not None
    _until(lambda: bool(parent.children()))
    child = parent.children()[0]
    assert supervisor.strays() == []
    parent.kill()
    _until(lambda: [process.pid for process in supervisor.strays()] == [child.pid])
    assert supervisor.stop_all() == ["unrecorded"]
    _until(lambda: not child.is_running())


def test_a_process_that_ignores_the_polite_signal_is_killed(supervisor: Supervisor) -> None:
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)"
    argv = (sys.executable, "-c", f"{script}; time.sleep(600)")
    supervisor.start([Process(name="deaf", argv=argv, purpose="ignores")])
    _until(lambda: supervisor.log("deaf").read_text() == "deaf\n")
    pid = supervisor.records()["deaf"].pid
    assert supervisor.stop_all(grace=0.2) == ["deaf"]
    assert not psutil.pid_exists(pid)


def test_one_that_ends_at_once_is_an_error_with_its_last_words(supervisor: Supervisor) -> None:
    argv = (sys.executable, "-c", "import sys; sys.exit('cannot open the database')")
    probe = Probe("http://127.0.0.1:9/healthz")
    with pytest.raises(LabError) as caught:
        supervisor.start([Process(name="etcd", argv=argv, purpose="the database", probe=probe)])
    assert "etcd (the database) ended right after its start" in caught.value.problem
    assert "cannot open the database" in caught.value.problem


def test_one_that_never_answers_is_an_error_with_the_probes_answer(
    supervisor: Supervisor, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("berth.lab.processes.READY_SECONDS", 1.0)
    argv = (sys.executable, "-c", SERVER, str(port))
    probe = Probe(f"http://127.0.0.1:{port}/other")
    with pytest.raises(LabError) as caught:
        supervisor.start([Process(name="api", argv=argv, purpose="a server", probe=probe)])
    assert "api (a server) is not ready after" in caught.value.problem


def test_a_process_is_ready_when_its_probe_says_so(supervisor: Supervisor, port: int) -> None:
    probe = Probe(f"http://127.0.0.1:{port}/healthz")
    server = Process(name="api", argv=(sys.executable, "-c", SERVER, str(port)), purpose="a server", probe=probe)
    supervisor.start([server])
    assert probe.answer() is None
    assert supervisor.problem(server) is None
    running = supervisor.running("api")
    assert running is not None
    running.suspend()
    assert supervisor.problem(server, patience=0) is not None
    running.resume()


def test_a_taken_port_is_one_error_with_the_holders_name(supervisor: Supervisor) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = Process(name="api", argv=SLEEPER, purpose="a server", ports=(port,))
        with pytest.raises(LabError) as caught:
            supervisor.start([server])
    assert f"port {port} is taken by" in caught.value.problem
    assert f"(pid {os.getpid()})" in caught.value.problem
    assert supervisor.records() == {}
