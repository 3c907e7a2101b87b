import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from berth.lab.errors import LabError
from berth.lab.home import LabHome
from berth.lab.probes import Probe
from berth.lab.processes import MARK, LabProcess, Supervisor, start_order

SLEEP = "import time; time.sleep(600)"
SLEEPER = (sys.executable, "-c", SLEEP)
# Answers 200 at /healthz and 500 elsewhere.
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
    home = LabHome(tmp_path / "lab")
    home.run.mkdir(parents=True)
    supervisor = Supervisor(home)
    yield supervisor
    supervisor.stop_all()


@pytest.fixture
def server() -> LabProcess:
    """HTTP server on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = (sys.executable, "-c", SERVER, str(port))
    return LabProcess("api", argv, "a server", probe=Probe(f"http://127.0.0.1:{port}/healthz"))


def _sleeper(name: str, *needs: str) -> LabProcess:
    return LabProcess(name, SLEEPER, "sleeps", needs)


def _script(name: str, script: str) -> LabProcess:
    return LabProcess(name, (sys.executable, "-c", script), "a script")


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Ends by starting another process of the lab, as the lab's controller may.
CONTROLLER = """
import pathlib, signal, sys, time
from berth.lab.home import LabHome
from berth.lab.processes import LabProcess, Supervisor
def end(*_):
    ray = LabProcess("ray", (sys.executable, "-c", {sleep!r}), "sleeps")
    Supervisor(LabHome(pathlib.Path({root!r}))).start([ray])
    sys.exit()
signal.signal(signal.SIGTERM, end)
pathlib.Path({root!r}, "ready").touch()
time.sleep(600)
"""


def test_what_a_process_starts_at_its_end_is_ended_too(supervisor: Supervisor) -> None:
    root = supervisor.home.root
    supervisor.start([_script("controller", CONTROLLER.format(root=str(root), sleep=SLEEP))])
    _until((root / "ready").exists)
    assert supervisor.stop_all() == ["controller", "ray"]
    assert supervisor.strays() == []


def test_order_follows_needs() -> None:
    needs = {
        "scheduler": ["api"],
        "api": ["etcd"],
        "etcd": [],
        "kwok": ["api"],
        "controller": ["api", "absent"],
    }
    assert start_order(needs) == [["etcd"], ["api"], ["controller", "kwok", "scheduler"]]


def test_start_and_stop_can_be_repeated(supervisor: Supervisor) -> None:
    processes = [_sleeper("api", "etcd"), _sleeper("etcd")]
    assert supervisor.start(processes) == ["etcd", "api"]
    records = supervisor.records()
    assert all(os.getsid(record.pid) == record.pid for record in records.values()), (
        "sessions of their own"
    )
    assert supervisor.start(processes) == []
    assert supervisor.records() == records
    assert supervisor.stop(["etcd", "api"]) == ["api", "etcd"]
    assert not any(psutil.pid_exists(record.pid) for record in records.values())
    assert supervisor.stop(["etcd", "api"]) == supervisor.stop_all() == []


def test_a_process_whose_program_changed_is_started_again(supervisor: Supervisor) -> None:
    supervisor.start([_sleeper("etcd")])
    first = supervisor.records()["etcd"].pid
    changed = replace(_sleeper("etcd"), version="2")
    assert supervisor.start([changed]) == ["etcd"]
    assert supervisor.records()["etcd"].pid != first
    assert supervisor.start([changed]) == []


def test_a_reused_pid_is_neither_taken_for_a_labs_nor_signaled(supervisor: Supervisor) -> None:
    with subprocess.Popen(SLEEPER) as other:
        started = psutil.Process(other.pid).create_time() - 3600
        record = {"name": "etcd", "pid": other.pid, "started": started, "needs": []}
        (supervisor.home.run / "etcd.json").write_text(json.dumps(record))
        assert supervisor.running("etcd") is None
        assert supervisor.stop(["etcd"]) == supervisor.stop_all() == []
        assert other.poll() is None
        other.kill()


def test_a_stale_or_unreadable_record_is_no_obstacle(supervisor: Supervisor) -> None:
    (supervisor.home.run / "etcd.json").write_text('{"name": "etcd", "pid"')
    (supervisor.home.run / "api.json").write_text(
        '{"name": "api", "pid": 4194300, "started": 1, "needs": []}'
    )
    assert supervisor.running("etcd") is None
    assert supervisor.start([_sleeper("api", "etcd"), _sleeper("etcd")]) == ["etcd", "api"]


def test_unrecorded_processes_are_found_by_their_mark(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    def marked(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(SLEEPER, env=os.environ | {MARK: f"{folder.resolve()}:etcd"})

    with marked(supervisor.home.root) as own, marked(tmp_path / "lab2") as other:
        _until(lambda: [process.pid for process in supervisor.strays()] == [own.pid])
        assert supervisor.stop_all() == ["unrecorded"]
        assert own.wait(timeout=120) == -signal.SIGTERM
        assert other.poll() is None
        other.kill()


def test_a_recorded_processs_child_is_no_stray_until_it_is_orphaned(supervisor: Supervisor) -> None:
    supervisor.start([_script("parent", f"import subprocess; subprocess.run({SLEEPER!r})")])
    parent = supervisor.running("parent")
    assert parent is not None
    _until(lambda: bool(parent.children()))
    (child,) = parent.children()
    assert supervisor.strays() == []
    parent.kill()
    _until(lambda: [process.pid for process in supervisor.strays()] == [child.pid])
    assert supervisor.stop_all() == ["unrecorded"]
    _until(lambda: not child.is_running())


def test_a_process_that_ignores_sigterm_is_killed(supervisor: Supervisor) -> None:
    ignore = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)"
    )
    supervisor.start([_script("deaf", f"{ignore}; {SLEEP}")])
    _until(lambda: supervisor.log("deaf").read_text() == "deaf\n")
    pid = supervisor.records()["deaf"].pid
    assert supervisor.stop_all(grace=0.2) == ["deaf"]
    assert not psutil.pid_exists(pid)


def test_a_process_that_ends_at_once_is_an_error_with_its_last_words(
    supervisor: Supervisor, server: LabProcess
) -> None:
    dead = replace(
        _script("etcd", "import sys; sys.exit('cannot open the database')"), probe=server.probe
    )
    with pytest.raises(LabError, match="cannot open the database") as caught:
        supervisor.start([dead])
    assert "etcd (a script) ended right after its start" in caught.value.problem


def test_a_process_that_never_answers_is_an_error(
    supervisor: Supervisor, server: LabProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("berth.lab.processes.READY_SECONDS", 1.0)
    assert server.probe is not None
    with pytest.raises(LabError, match=r"api \(a server\) is not ready after"):
        supervisor.start([replace(server, probe=Probe(f"{server.probe.url}/other"))])


def test_a_process_is_ready_when_its_probe_succeeds(
    supervisor: Supervisor, server: LabProcess
) -> None:
    supervisor.start([server])
    assert server.probe is not None
    assert server.probe.answer() is None
    assert supervisor.problem(server) is None
    running = supervisor.running("api")
    assert running is not None
    running.suspend()
    assert supervisor.problem(server, patience=0) is not None
    running.resume()
