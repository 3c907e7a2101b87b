"""Lanes that work at the same time, and what they say of the time that is left."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING

import pytest

from berth.lab.errors import LabError
from berth.lab.home import CLONE
from berth.lab.toolchain import build, compiler, crew
from berth.lab.toolchain.cache import Cache
from berth.lab.toolchain.ensure import programs_of
from berth.lab.toolchain.estimate import Estimate, roughly
from berth.lab.toolchain.releases import CHOICE
from berth.lab.toolchain.tools import ETCD, HELM, KUBERNETES, PULUMI, TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from berth.lab.progress import Progress
    from berth.lab.toolchain.tools import Tool


def test_two_lanes_share_a_queue_and_the_second_begins_after_the_firsts_first_tool() -> None:
    queue: deque[Tool] = deque([ETCD, KUBERNETES, PULUMI])
    both = threading.Barrier(2, timeout=30)
    order: list[tuple[str, str]] = []

    def make(name: str) -> Callable[[Tool], None]:
        def one(tool: Tool) -> None:
            order.append((name, tool.name))
            if tool is not ETCD:
                both.wait()  # the other lane is at work too

        return one

    first = crew.Lane(queue, make("first"))
    reported: list[tuple[str, Tool]] = []
    crew.run(
        [first, crew.Lane(queue, make("second"), after=first)],
        lambda: None,
        lambda what, tool: reported.append((what, tool)),
    )
    assert order[0] == ("first", "etcd")
    assert {name for name, _ in order[1:]} == {"first", "second"}
    assert reported[:2] == [("started", ETCD), ("finished", ETCD)]
    assert {tool for what, tool in reported if what == "finished"} == {ETCD, KUBERNETES, PULUMI}


def test_an_error_in_one_lane_stops_the_other_and_is_raised() -> None:
    stop = threading.Event()
    finished: list[Tool] = []

    def fail(_: Tool) -> None:
        raise ValueError("no such package")

    def wait(tool: Tool) -> None:
        assert stop.wait(30)
        finished.append(tool)

    with pytest.raises(ValueError, match="no such package"):
        crew.run(
            [crew.Lane(deque([PULUMI, HELM]), wait), crew.Lane(deque([ETCD]), fail)],
            stop.set,
            lambda _what, _tool: None,
        )
    assert HELM not in finished


def test_the_time_that_is_left_follows_this_machines_pace() -> None:
    now = 0.0
    tools = [ETCD, KUBERNETES, PULUMI]
    estimate = Estimate(tools, clock=lambda: now, cores=2)
    total = sum(tool.seconds for tool in tools)
    assert estimate.left() == total
    estimate.started(ETCD)
    now = 3.0 * ETCD.seconds  # three times slower than the recorded machine
    assert estimate.finished(ETCD) == now
    rest = KUBERNETES.seconds + PULUMI.seconds
    assert rest < estimate.left() < 3 * rest
    before = estimate.left()
    estimate.started(KUBERNETES)
    now += 30
    assert estimate.left() == before - 30
    estimate.finished(KUBERNETES)
    estimate.started(PULUMI)
    estimate.finished(PULUMI)
    assert (estimate.left(), str(estimate)) == (0, "all built")


def test_more_cores_take_less_time_up_to_a_limit() -> None:
    expected = {cores: Estimate(list(TOOLS), cores=cores).left() for cores in (1, 2, 4, 64)}
    assert expected[1] == 2 * expected[2]
    assert expected[4] == expected[64] == expected[2] / 2


def test_a_time_is_rounded_to_minutes() -> None:
    assert [roughly(seconds) for seconds in (0, 59, 60, 100, 601)] == [
        "less than a minute",
        "less than a minute",
        "about 1 min",
        "about 2 min",
        "about 10 min",
    ]


def test_progress_names_what_is_built_and_how_many_remain(
    machine: Path, progress: Progress, printed: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del machine
    monkeypatch.setenv(CHOICE, "source")
    programs_of([ETCD, KUBERNETES, HELM], progress)
    lines = printed().splitlines()
    assert lines[0].startswith("Building 3 tools from source, once for this machine (about ")
    assert "  … 1/3 etcd 3.6.8: the cluster's database; building" in lines
    ends = [line for line in lines if "✓" in line]
    assert ends[0].startswith("  ✓ etcd 3.6.8: the cluster's database (")
    assert "; 2 to go, about " in ends[0]
    assert "; 1 to go, " in ends[1]
    assert ends[2].endswith("; all built)")


def test_a_second_run_goes_on_where_the_first_stopped(
    machine: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "source")
    programs_of([ETCD], progress)
    programs_of([ETCD, HELM], progress)
    assert (machine / "built").read_text().split() == ["server", "helm"]


def test_caches_of_a_fetched_go_go_with_the_last_build_that_ends_well(tmp_path: Path) -> None:
    go = compiler.Go(tmp_path / "go", "1.99.0", "made for this test", tmp_path / "caches")
    compiled = tmp_path / "caches" / "build" / "package.a"
    environment = go.environment()
    assert environment["GOCACHE"] == str(compiled.parent)
    assert environment["GOMODCACHE"] == str(tmp_path / "caches" / "modules")
    with contextlib.suppress(LabError), go.in_use():
        compiled.parent.mkdir()
        compiled.touch()
        raise LabError("a build that failed")
    assert compiled.exists(), "the next run goes on with it"
    with go.in_use():
        with go.in_use():
            pass
        assert compiled.exists(), "another build uses it"
    assert not compiled.exists()


def test_ctrl_c_between_the_starts_of_two_lanes_ends_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, begun, left = threading.Event(), threading.Event(), threading.Event()
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if begun.is_set():
            raise KeyboardInterrupt
        start(thread)
        begun.wait()

    def make(_tool: Tool) -> None:
        begun.set()
        ended.wait(timeout=20)
        left.set()

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    lanes = [crew.Lane(deque([HELM]), make), crew.Lane(deque([ETCD]), make)]
    with pytest.raises(KeyboardInterrupt):
        crew.run(lanes, ended.set, lambda *_: None)
    assert left.is_set(), "its folder is removed before the process ends"


def test_a_build_that_starts_after_the_stop_ends_at_once(machine: Path, progress: Progress) -> None:
    (machine / "stuck").touch()
    (machine / "temporary").mkdir(exist_ok=True)
    builder = build.Builder(compiler.find([HELM.directory], Cache(machine / "cache", progress)), machine / "temporary")
    builder.stop()
    with pytest.raises(LabError):
        builder.build(HELM, machine)


def test_caches_that_the_user_chose_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOCACHE", str(tmp_path / "theirs"))
    (tmp_path / "theirs").mkdir()
    go = compiler.Go(tmp_path / "go", "1.99.0", "made for this test", tmp_path / "caches")
    assert go.environment()["GOCACHE"] == str(tmp_path / "theirs")
    with go.in_use():
        pass
    assert (tmp_path / "theirs").is_dir()


def test_the_early_begin_needs_no_package_and_ends_with_its_parent(machine: Path) -> None:
    (machine / "stuck").touch()
    script = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-S', '-m', 'berth.lab.toolchain.early'], cwd=sys.argv[1])\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(CLONE)],
        env=os.environ | {"BERTH_LAB": str(machine / "lab"), "TMPDIR": str(machine / "temporary"), CHOICE: "source"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdin is not None
    while not (machine / "built").exists() and parent.poll() is None:
        os.sched_yield()
    parent.kill()
    parent.communicate(timeout=60)
    while _group_exists(parent.pid):
        os.sched_yield()
    entries = [path for path in (machine / "cache" / "berth" / "tools").iterdir() if path.is_dir()]
    assert entries == []
    assert list((machine / "temporary").iterdir()) == [], "Go's temporary files go too"


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
