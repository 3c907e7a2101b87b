"""`berth submit` and `berth jobs` against a head whose answers are recorded ones of Ray."""

import asyncio
import io
import itertools
import json
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.cli.reach.jobs import dashboard as dashboards
from berth.cli.reach.jobs import follow, package
from berth.cli.reach.jobs.client import RayJob, RayJobs, UnknownJobError
from berth.cli.reach.jobs.dashboard import Dashboard, DashboardError, DashboardRefusedError
from berth.cli.reach.jobs.package import files_of, write_package
from berth.cli.verbs.jobs import show
from berth.cli.verbs.submit import submission
from berth.cli.verbs.submit.request import request_of
from berth.components.core.errors import BadInputError, BerthError
from tests.unit.recorded_cluster import RecordedCluster

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "ray_jobs.json").read_text(encoding="utf-8")
)["cases"]
LOG = "epoch 1\n"
CLIPBOARD = "\x1b]52;c;eA==\x07"
"""Escape sequence by which a terminal fills the clipboard."""


class Head:
    """Dashboard with jobs that run until they are stopped; its answers are recorded ones."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.packages: set[str] = set()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request to Ray's Jobs API, and without an end to what no Ray has."""
        if request.path == "/api/endless":
            return await self._endless(request)
        if request.path == "/api/nonsense":
            return web.Response(status=500, text=f"no {CLIPBOARD}")
        if request.path.startswith("/api/packages/"):
            known = request.path in self.packages
            body = await request.read()
            if request.method == "PUT" and body:
                self.packages.add(request.path)
            return web.Response(status=200 if known or body else 404)
        if request.path == "/api/jobs/":
            return (
                self._submit(await request.json())
                if request.method == "POST"
                else self._json([*self.jobs.values()])
            )
        name, _, what = request.path.removeprefix("/api/jobs/").partition("/")
        if name not in self.jobs:
            return web.Response(status=404, text=f"Job {name} does not exist")
        job = self.jobs[name]
        if what == "stop":
            job["status"] = "STOPPED"
            return self._json({"stopped": True})
        if what == "logs/tail":
            stream = web.WebSocketResponse()
            await stream.prepare(request)
            await stream.send_str(LOG)
            await stream.close()
            return stream
        return self._json({"logs": LOG} if what == "logs" else job)

    @staticmethod
    async def _endless(request: web.BaseRequest) -> web.StreamResponse:
        """Answer without an end, a piece at a time, until nobody listens."""
        stream = web.StreamResponse()
        await stream.prepare(request)
        with suppress(ConnectionError):
            while True:
                await stream.write(b"[" * 100)
        return stream

    def _submit(self, body: dict[str, Any]) -> web.Response:
        name = body["submission_id"]
        if name in self.jobs:
            status, text, _ = CASES["submitted again"]
            return web.Response(status=status, text=text)
        self.jobs[name] = CASES["running"][1] | {
            "submission_id": name,
            "entrypoint": body["entrypoint"],
        }
        return self._json({"submission_id": name})

    @staticmethod
    def _json(value: Any) -> web.Response:
        return web.json_response(value)


@pytest.fixture
def url() -> Iterator[str]:
    """Address of the head's dashboard."""
    loop = asyncio.new_event_loop()
    port = list[int]()
    ready = threading.Event()
    ended = asyncio.Event()

    async def serve() -> None:
        handler = web.Server(Head().answer)
        server = await loop.create_server(handler, "127.0.0.1", 0)
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        await ended.wait()
        server.close()
        await handler.shutdown(1)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait()
    yield f"http://127.0.0.1:{port[0]}"
    loop.call_soon_threadsafe(ended.set)
    thread.join()
    loop.close()


class Way:
    """Connection that leads to the head at once."""

    url = ""

    def __init__(self, berth: Any) -> None:
        self.berth = berth
        self.head = {"metadata": {"uid": "1"}}
        self.dashboard = Dashboard(berth.name, self.url, "token")

    def renew(self) -> None:
        pass


@pytest.fixture
def berth(url: str, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(
        name="alice",
        namespace="berth-alice",
        key=("berth-alice", "alice"),
        api=RecordedCluster({}),
        suspension_note=lambda: "",
        pods=lambda _kind: [{"metadata": {"uid": "1"}}],
    )
    monkeypatch.setattr(Way, "url", url)
    for module in (submission, show):
        monkeypatch.setattr(module, "live_berth", lambda *_: found)
        monkeypatch.setattr(module, "connected_dashboard", lambda berth: nullcontext(Way(berth)))
    return found


def call(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.mark.usefixtures("berth")
def test_a_job_is_submitted_listed_and_stopped(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hi')\n")
    words = (
        "submit",
        "alice",
        "--working-dir",
        str(tmp_path),
        "--name",
        "one",
        "--no-follow",
        "--json",
    )
    done = call(*words, "--", "python", "train.py", "--lr", "1e-3")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["id"], found["status"]) == ("one", "RUNNING")
    assert found["entrypoint"] == "python train.py --lr 1e-3"
    assert f"uploaded {tmp_path} (1 file, " in done.stderr
    again = call(*words, "--", "true")
    assert (again.exit_code, "alice has a job 'one' already" in again.stderr) == (2, True)
    assert "Ray has the files of" in again.stderr
    assert [job["id"] for job in json.loads(call("jobs", "alice", "--json").stdout)] == ["one"]
    assert call("jobs", "alice", "one", "--log").stdout == LOG
    stopped = call("jobs", "alice", "one", "--stop", "--json")
    assert (stopped.exit_code, json.loads(stopped.stdout)["status"]) == (0, "STOPPED")
    unknown = call("jobs", "alice", "two")
    assert (unknown.exit_code, "alice has no job 'two'" in unknown.stderr) == (2, True)


@pytest.mark.usefixtures("berth")
def test_a_job_that_is_followed_ends_with_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job ends as the recorded one did."""
    ended: Callable[[RayJobs, str], RayJob] = RayJobs.get
    asked: list[str] = []

    def get(jobs: RayJobs, job: str) -> RayJob:
        asked.append(job)
        if len(asked) == 1:
            jobs.stop(job)
        return ended(jobs, job) if len(asked) == 1 else of_case("failed with 3")

    monkeypatch.setattr(RayJobs, "get", get)
    done = call("submit", "alice", "--no-working-dir", "--", "exit 3")
    assert done.exit_code == 3
    assert LOG in done.stdout
    assert "failed after 1 s: Job entrypoint command failed with exit code 3\n" in done.stderr


@pytest.mark.usefixtures("berth")
def test_ctrl_c_leaves_the_job_running_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(submission, "exit_code_of_job", interrupt)
    done = call("submit", "alice", "--no-working-dir", "--name", "long", "--", "sleep 600")
    assert done.exit_code == 130
    assert (
        "job long goes on without this command\nits log: berth jobs alice long --follow;"
        in done.stderr
    )
    assert json.loads(call("jobs", "alice", "long", "--json").stdout)["status"] == "RUNNING"


@pytest.mark.parametrize(
    ("answer", "status", "outcome"), [("y", "STOPPED", "is stopped"), ("n", "RUNNING", "goes on")]
)
def test_ctrl_c_asks_whether_the_job_is_to_stop(
    url: str,
    answer: str,
    status: str,
    outcome: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    jobs = RayJobs("alice", Dashboard("alice", url, None))
    jobs.submit({"entrypoint": "sleep 600", "submission_id": "long"})
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("typer.confirm", lambda *_, **__: answer == "y")
    submission._ask_to_stop(jobs, "long")  # noqa: SLF001
    assert jobs.get("long").status == status
    assert f"job long {outcome}" in capsys.readouterr().err


def test_a_suspended_berth_is_not_asked(berth: SimpleNamespace) -> None:
    berth.suspension_note = lambda: "alice is suspended; bring it back with: berth wake alice"
    done = call("submit", "alice", "--no-working-dir", "--", "true")
    assert done.exit_code == 1
    assert "bring it back with: berth wake alice\nadd --wake to do that first" in done.stderr


def of_case(case: str) -> RayJob:
    from berth.cli.reach.jobs import client  # noqa: PLC0415

    recorded = CASES[case][1]
    return client._job(recorded)  # noqa: SLF001


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("succeeded", 0),
        ("failed with 3", 3),
        ("killed", 128 + signal.SIGKILL),
        ("stopped", 1),
        ("package that is not there", 1),
    ],
)
def test_exit_codes_of_recorded_jobs(case: str, code: int) -> None:
    found = of_case(case)
    assert (found.has_ended, found.code) == (True, code)


def test_a_log_that_comes_again_is_not_written_twice(
    berth: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    pieces: Iterator[list[object]] = iter(
        [["one\ntw", DashboardError("lost")], ["one\n", "two\nth", "ree\n"]]
    )

    class Jobs:
        def __init__(self, *_: object) -> None:
            self.ended = False

        def get(self, _job: str) -> RayJob:
            return of_case("succeeded" if self.ended else "running")

        def tail(self, _job: str) -> Iterator[str]:
            for piece in next(pieces):
                if isinstance(piece, DashboardError):
                    raise piece
                yield str(piece)
            self.ended = True

    monkeypatch.setattr(follow, "RayJobs", Jobs)
    monkeypatch.setattr(follow, "_PAUSE_SECONDS", 0)
    follow.follow_job(Way(berth), "long", written.write)  # type: ignore[arg-type]
    assert written.getvalue() == "one\ntwo\nthree\n"


def test_a_log_steers_no_terminal() -> None:
    written = io.StringIO()
    log = follow._Log(written.write)  # noqa: SLF001
    text = f"\x1b[32mgood\x1b[0m {CLIPBOARD}\r\n10%\r20%"
    log.write_new(text, len(text))
    assert written.getvalue() == "\x1b[32mgood\x1b[0m \\x1b]52;c;eA==\\x07\n10%\n20%"


def test_a_refusal_steers_no_terminal(url: str) -> None:
    with pytest.raises(DashboardRefusedError) as refused:
        Dashboard("alice", url, None).answer_to("GET", "/api/nonsense")
    assert str(refused.value).endswith("refuses: 500 no \\x1b]52;c;eA==\\x07")


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("_MOST_BYTES", 1000, "to /api/endless is larger than"),
        ("time", SimpleNamespace(monotonic=itertools.count(0, 100).__next__), "does not end in"),
    ],
)
def test_an_answer_without_an_end_has_one(
    url: str, monkeypatch: pytest.MonkeyPatch, limit: str, value: object, words: str
) -> None:
    monkeypatch.setattr(dashboards, limit, value)
    with pytest.raises(DashboardError, match=words):
        Dashboard("alice", url, None).answer_to("GET", "/api/endless")


@pytest.mark.parametrize(
    "answer",
    [
        "1",
        "null",
        '{"jobs": 1}',
        "[1]",
        "[[]]",
        "not JSON",
        "[" * 100_000,
        '[{"submission_id": {}, "driver_exit_code": [], "start_time": {}, "end_time": 1e999}]',
        '[{"start_time": -1e30, "status": ["\u001b[2J"], "entrypoint": 5, "message": {}}]',
    ],
)
@pytest.mark.parametrize("words", [["jobs", "alice"], ["jobs", "alice", "x"]])
def test_an_answer_that_is_not_rays_is_an_error_or_a_strange_job(
    berth: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, answer: str, words: list[str]
) -> None:
    assert berth.name == "alice"
    monkeypatch.setattr(Dashboard, "_send", lambda *_, **__: answer)
    done = call(*words)
    assert not isinstance(done.exception, Exception), done.output
    assert "\x1b" not in done.output
    if done.exit_code:
        assert done.stderr.startswith("error: the dashboard of alice answers")


def test_a_new_head_ends_what_follows_a_job(berth: SimpleNamespace) -> None:
    berth.pods = lambda _kind: [{"metadata": {"uid": "2"}}]
    with pytest.raises(BerthError, match="the head of alice is gone, and job long with it"):
        follow._renew(Way(berth), "long")  # type: ignore[arg-type]  # noqa: SLF001


def test_what_ray_refuses_is_said_without_its_traceback(url: str) -> None:
    dashboard = Dashboard("alice", url, None)
    with pytest.raises(
        DashboardRefusedError, match="the dashboard of alice refuses: 404 Job none does not exist"
    ):
        list(dashboard.messages("/api/jobs/none/logs/tail"))
    with pytest.raises(UnknownJobError):
        RayJobs("alice", dashboard).get("none")
    error = DashboardRefusedError("alice", *CASES["without entrypoint"][:2])
    assert (
        error.last_line
        == "TypeError: JobSubmitRequest.__init__() missing 1 required positional argument:"
        " 'entrypoint'"
    )
    assert "does not accept the token: 403" in str(
        DashboardRefusedError("alice", *CASES["wrong token"][:2])
    )


def test_the_package_has_what_ray_would_upload(tmp_path: Path) -> None:
    files = {
        "train.py": "import src.model",
        "run.sh": "#!/bin/sh",
        "src/model.py": "x = 1",
        "src/.rayignore": "/data\n*.bin\n!keep.bin\n",
        "src/data/big": "x",
        "src/a.bin": "x",
        "src/keep.bin": "x",
        ".gitignore": "*.log\nout/\n",
        "a.log": "x",
        "out/x": "x",
        ".git/config": "x",
        "lib/__pycache__/x.pyc": "x",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "src" / "up").symlink_to("..")
    os.mkfifo(tmp_path / "pipe")
    expected = [
        ".gitignore",
        "run.sh",
        "src/.rayignore",
        "src/keep.bin",
        "src/model.py",
        "train.py",
    ]
    assert [name for _, name in files_of(tmp_path)] == expected
    first = io.BytesIO()
    second = io.BytesIO()
    found = write_package(tmp_path, first)
    os.utime(tmp_path / "train.py", (0, 0))
    assert (write_package(tmp_path, second), found.files) == (
        found,
        6,
    ), "the same files are the same package"
    with ZipFile(first) as written:
        assert written.namelist() == expected
        assert stat.S_IMODE(written.getinfo("run.sh").external_attr >> 16) == 0o755
    (tmp_path / "train.py").write_text("import src.other")
    assert write_package(tmp_path, io.BytesIO()).name != found.name


def test_a_folder_that_is_too_large_is_refused_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "LARGEST", 2**18)
    (tmp_path / "weights.bin").write_bytes(os.urandom(2**19))
    (tmp_path / "train.py").write_text("x")
    with pytest.raises(
        BadInputError, match=r"0\.2 MiB that Ray takes; largest: weights\.bin \(0\.5 MiB\)"
    ) as caught:
        write_package(tmp_path, io.BytesIO())
    assert ".rayignore" in caught.value.remedy
    with pytest.raises(BadInputError, match="none is not a folder"):
        write_package(tmp_path / "none", io.BytesIO())


def test_options_become_a_request(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("einops==0.8 # of the model\n\n# tools\nrich\n")
    (tmp_path / "env.yaml").write_text(
        "env_vars: {A: file, B: file}\nconfig: {setup_timeout_seconds: 900}\n"
    )
    request = request_of(
        ("python", "train.py", "a b"),
        env=("A=option", "TOKEN"),
        pip=("torch",),
        requirements=tmp_path / "requirements.txt",
        runtime_env=tmp_path / "env.yaml",
        gpus=1,
        memory="2Gi",
        environment={"TOKEN": "canary"},
    )
    assert request.id.startswith("train-")
    assert request.in_package("gcs://p.zip") == {
        "entrypoint": "python train.py 'a b'",
        "submission_id": request.id,
        "runtime_env": {
            "env_vars": {"A": "option", "B": "file", "TOKEN": "canary"},
            "config": {"setup_timeout_seconds": 900},
            "pip": ["torch", "einops==0.8", "rich"],
            "working_dir": "gcs://p.zip",
        },
        "entrypoint_num_gpus": 1,
        "entrypoint_memory": 2**31,
    }
    assert "canary" not in repr(request)
    assert request_of(("a && b",), environment={}).body["entrypoint"] == "a && b"


def test_all_wrong_options_are_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("rich\n-r other.txt\n-e .\n")
    (tmp_path / "env.yaml").write_text("{pip: [a], working_dir: ., py_modules: [./x]}")
    with pytest.raises(BadInputError) as caught:
        request_of(
            ("true",),
            name="a/b",
            env=("1=x", "MISSING"),
            requirements=tmp_path / "r.txt",
            runtime_env=tmp_path / "env.yaml",
            memory="much",
            environment={},
        )
    for problem in (
        "--name: 'a/b' is not",
        "--env: '1' is not a variable's name",
        "--env: MISSING is not set here",
        f"{tmp_path}/r.txt:2: '-r other.txt' names a file",
        f"{tmp_path}/r.txt:3: '-e .' names a file",
        "go into `pip` of the runtime environment",
        "working_dir '.' is a folder of this machine",
        "py_modules has './x'",
        "--memory: 'much' is not",
    ):
        assert problem in str(caught.value)
