"""The keeper's pass beside berths that answer what they like: each berth has its own outcome."""

import contextlib
import http
import json
import os
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.components.programs import keeper, servers
from berth.components.programs.keeper import KeeperPass
from berth.components.programs.lifetimes import parse_duration, parse_expiry
from berth.components.programs.logins import OPEN_UNTIL
from berth.components.programs.servers import ApiError, JsonServer
from tests.conftest import GOLDEN
from tests.unit.serving import Handler, answer, body_of, kubeconfig, serving

Object = dict[str, Any]

NOW = datetime(2026, 6, 1, 22, tzinfo=UTC)
LONG_AGO = "2026-01-01T00:00:00Z"
PATIENCE = 3.0
NO_ACTORS: Object = {"data": {"result": {"result": []}}}


NOTES = {"idle_since"}
"""Annotations of a RayCluster; the others stand on its namespace."""


def annotated(name: str, annotations: dict[str, str], **metadata: Any) -> Object:
    marks = {f"berth/{key.replace('_', '-')}": text for key, text in annotations.items()}
    created = {
        "name": name,
        "creationTimestamp": LONG_AGO,
        "resourceVersion": "1",
        "annotations": marks,
    }
    return {"metadata": created | metadata}


def ray_cluster(name: str, namespace: str, **annotations: str) -> Object:
    cluster = annotated(name, annotations, namespace=namespace)
    return cluster | {"spec": {"authOptions": {"mode": "disabled"}}}


@dataclass
class World:
    """An API server with berths, whose heads it plays too, under /heads/NAME.

    Attributes:
        spaces: namespaces, by the name of their berth.
        clusters: RayClusters of the berths' names.
        beside: further objects by the end of their list's path, `berth-alice/rayjobs`.
        patches: last patch of each object, by `kind/name`; quotas are all of one name.
        older: berths whose stack has made no quota.
        busy: berths whose RayCluster somebody writes all the time.
        broken: berths whose RayCluster the API server refuses to change.
    """

    spaces: dict[str, Object] = field(default_factory=dict)
    clusters: dict[str, Object] = field(default_factory=dict)
    beside: dict[str, list[Object]] = field(default_factory=dict)
    heads: dict[str, Callable[[Handler], None]] = field(default_factory=dict)
    patches: dict[str, Object] = field(default_factory=dict)
    lists: list[str] = field(default_factory=list)
    elsewhere: set[str] = field(default_factory=set)
    older: set[str] = field(default_factory=set)
    busy: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    url: str = ""

    def berth(
        self, name: str, head: Callable[[Handler], None] | None = None, **annotations: str
    ) -> None:
        facts = {key: text for key, text in annotations.items() if key not in NOTES} or {
            "expires": "1d"
        }
        notes = {key: text for key, text in annotations.items() if key in NOTES}
        self.spaces[name] = annotated(f"berth-{name}", facts)
        self.clusters[name] = ray_cluster(name, f"berth-{name}", **notes)
        self.heads[name] = head or (lambda handler: answer_jobs(handler, []))

    def handle(self, handler: Handler) -> None:
        """Answer a request."""
        parts = urllib.parse.urlsplit(handler.path)
        words = parts.path.split("/")
        if handler.command == "PATCH":
            change = body_of(handler)
            late = words[-1] in self.busy and "resourceVersion" in change["metadata"]
            code = 409 if late else 422 if words[-1] in self.broken else 200
            if code == http.HTTPStatus.OK:
                self.patches["/".join(words[-2:])] = change
            answer(handler, {"message": "no"}, code)
        elif words[1] == "heads":
            self.heads[words[2]](handler)
        elif words[-2] == "rayclusters":
            answer(handler, self.clusters[words[-1]])
        elif words[-2] == "resourcequotas":
            name = words[-3].removeprefix("berth-")
            answer(
                handler,
                b"{}" if name in self.older else annotated(name, {}),
                404 if name in self.older else 200,
            )
        elif words[-1] == "pods" and "node-type" in parts.query:
            started = {"state": {"running": {"startedAt": LONG_AGO}}}
            status = {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": [started]}
            answer(handler, {"items": [{"metadata": {}, "status": status}]})
        else:
            self.answer_page(handler, parts.query, self.listed(*words[-2:]))

    def listed(self, namespace: str, kind: str) -> list[Object]:
        """Items of a list."""
        if kind == "namespaces":
            return [self.spaces[name] for name in self.spaces if name not in self.elsewhere]
        own = [self.clusters.get(namespace.removeprefix("berth-"))] if kind == "rayclusters" else []
        return [*filter(None, own), *self.beside.get(f"{namespace}/{kind}", [])]

    def answer_page(self, handler: Handler, asked: str, items: list[Object]) -> None:
        self.lists.append(handler.path.partition("?")[0])
        query = urllib.parse.parse_qs(asked)
        start = int(query.get("continue", ["0"])[0])
        count = int(query["limit"][0])
        more = str(start + count) if start + count < len(items) else ""
        answer(handler, {"items": items[start : start + count], "metadata": {"continue": more}})

    def look(self) -> dict[str, Object]:
        pass_over = KeeperPass(JsonServer(self.url), NOW, dashboard=f"{self.url}/heads/{{name}}")
        return {
            report["rayCluster"].partition("/")[2]: report
            for report in pass_over.reports("berth/environment=e")
        }


def answer_jobs(handler: Handler, jobs: Any) -> None:
    answer(handler, jobs if handler.path.endswith("/api/jobs/") else NO_ACTORS)


@pytest.fixture
def world() -> Iterator[World]:
    """A world on loopback."""
    found = World()
    with serving(found.handle) as found.url:
        yield found


def test_an_open_login_holds_up_a_suspension(world: World) -> None:
    world.berth("used")
    world.berth("left")
    for name, minutes in (("used", 4), ("left", -1)):
        until = f"{NOW + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
        world.clusters[name]["metadata"]["annotations"][OPEN_UNTIL] = until
    reports = world.look()
    assert (reports["left"]["did"], reports["used"]["did"]) == ("suspended", "")
    assert (
        reports["used"]["heldUp"]
        == "it has expired, but an open login (renewed until 22:04 UTC) runs"
    )


RELEASE = threading.Event()
"""Set by a test when a head that stalls may end."""


def _stalls_in_its_body(handler: Handler) -> None:
    handler.send_response(500)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"half")
    handler.wfile.flush()
    RELEASE.wait(60)


def _drips_headers(handler: Handler) -> None:
    handler.send_response(200)
    handler.flush_headers()
    try:
        while not RELEASE.wait(PATIENCE / 5):
            handler.wfile.write(b"X: y\r\n")
    except OSError:
        pass


def _answers_too_much(handler: Handler) -> None:
    with contextlib.suppress(OSError):
        answer(handler, b"[" + b" " * (2 * servers.MOST_BYTES) + b"]")


HOSTILE: dict[str, tuple[Callable[[Handler], None], str]] = {
    "stalls in its body": (_stalls_in_its_body, "not in time"),
    "drips headers": (_drips_headers, "not in time"),
    "answers too much": (_answers_too_much, "more than 1 MiB"),
    "nests for ever": (lambda handler: answer(handler, b"[" * 200_000), "nonsense"),
    "ends at the end of time": (
        lambda handler: answer_jobs(handler, [{"end_time": 1e300}]),
        "nonsense",
    ),
    "answers a number": (lambda handler: answer_jobs(handler, 5), "not a list of jobs"),
    "has jobs that are lists": (lambda handler: answer_jobs(handler, [[]]), "nonsense"),
    "refuses": (lambda handler: answer(handler, b'{"message": "no"}', 503), "answers 503: no"),
    "redirects": (lambda handler: answer(handler, b"", 302), "answers 302"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_head_that_answers_badly_is_unknown_and_stops_nobody(
    world: World, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "SECONDS", PATIENCE)
    RELEASE.clear()
    head, words = HOSTILE[what]
    world.berth("bad", head, expires="1d")
    world.berth("good", expires="1d")
    try:
        reports = world.look()
    finally:
        RELEASE.set()
    assert words in reports["bad"]["unknown"]
    assert "its work is unknown" in reports["bad"]["heldUp"]
    assert world.patches["rayclusters/good"]["spec"] == {"suspend": True}
    assert "spec" not in world.patches["rayclusters/bad"]


FAULTY = {
    "a lifetime of ages": {"idle": "99999999999999d"},
    "a lifetime of thousands of digits": {"idle": "9" * 5000 + "d"},
    "a day at the end of the calendar": {"expires": "9999-12-31"},
    "a zone that is a folder": {"expires": "1d", "zone": "../../etc"},
    "a note that is no time": {"idle": "1h", "idle_since": "soon"},
}


@pytest.mark.parametrize("what", FAULTY)
def test_a_faulty_annotation_is_an_error_of_its_own_berth(world: World, what: str) -> None:
    world.berth("bad", None, **FAULTY[what])
    world.berth("good")
    reports = world.look()
    assert reports["bad"]["error"]
    assert len(reports["bad"]["error"]) <= 500
    assert reports["good"]["did"] == "suspended"


def test_every_page_of_the_list_is_read(world: World) -> None:
    for number in range(230):
        world.berth(f"b{number}", working_hours="mon-fri 00:00-24:00")
    assert len(world.look()) == 230
    assert world.lists.count("/api/v1/namespaces") == 3


def test_work_that_begins_before_the_suspension_holds_it_up(world: World) -> None:
    asked = []

    def head(handler: Handler) -> None:
        if handler.path.endswith("/api/jobs/"):
            asked.append(handler.path)
        job = {"submission_id": "j", "status": "RUNNING", "entrypoint": "train", "start_time": 1}
        answer_jobs(handler, [job] if len(asked) > 1 else [])

    world.berth("x", head)
    report = world.look()["x"]
    assert (report["did"], len(asked)) == ("", 2)
    assert "job j (running): train runs" in report["heldUp"]
    assert "spec" not in world.patches["rayclusters/x"]


def test_reports_come_one_by_one(world: World) -> None:
    RELEASE.clear()

    def slow(handler: Handler) -> None:
        RELEASE.wait(60)
        answer_jobs(handler, [])

    world.berth("slow", slow)
    world.berth("quick")
    reports = KeeperPass(
        JsonServer(world.url), NOW, dashboard=f"{world.url}/heads/{{name}}"
    ).reports("a=b")
    first = next(reports)
    RELEASE.set()
    assert first["rayCluster"] == "berth-quick/quick"
    assert [report["rayCluster"] for report in reports] == ["berth-slow/slow"]


def test_what_is_beside_a_berth_is_carried_out(world: World) -> None:
    """The decisions are those of workload_cases.yaml."""
    world.berth("alice")
    world.clusters["alice"]["spec"]["suspend"] = True
    tonight = f"{NOW - timedelta(minutes=9):%Y-%m-%dT%H:%M:%SZ}"
    job = annotated("night", {}, creationTimestamp=tonight) | {
        "spec": {"rayClusterSpec": {"a": 1}, "shutdownAfterJobFinishes": True}
    }
    service = annotated("forever", {}) | {"spec": {"rayClusterConfig": {}}}
    pod = annotated("stays", {}) | {"status": {"phase": "Running"}}
    world.beside = {
        "berth-alice/rayjobs": [job],
        "berth-alice/rayservices": [service],
        "berth-alice/pods": [pod],
    }
    report = world.look()["alice"]
    assert report["beside"] == ["suspended RayJob night", "suspended RayService forever"]
    assert report["closed"] == "pod stays does not end"
    assert world.patches["rayjobs/night"] == {"spec": {"suspend": True}}
    assert world.patches["rayservices/forever"] == {"spec": {"rayClusterConfig": {"suspend": True}}}
    quota = world.patches["resourcequotas/closed-until-berth-wakes"]
    assert quota == {
        "spec": {"hard": {"pods": "0"}},
        "metadata": {"annotations": {"berth/begun": LONG_AGO}},
    }
    notes = world.patches["rayclusters/alice"]["metadata"]["annotations"]
    assert notes["berth/closed"] == "pod stays does not end"


def test_whoever_writes_all_the_time_keeps_no_berth_awake(world: World) -> None:
    world.berth("alice")
    world.busy = {"alice"}
    assert world.look()["alice"]["did"] == "suspended"
    assert world.patches["rayclusters/alice"]["spec"] == {"suspend": True}


def test_a_raycluster_that_takes_no_change_keeps_nothing_beside_it(world: World) -> None:
    world.berth("alice")
    world.broken = {"alice"}
    world.beside = {
        "berth-alice/rayservices": [annotated("s", {}) | {"spec": {"rayClusterConfig": {}}}]
    }
    assert "answers 422" in world.look()["alice"]["error"]
    assert world.patches["rayservices/s"] == {"spec": {"rayClusterConfig": {"suspend": True}}}


def test_a_stack_of_an_older_version_goes_on_as_it_was(world: World) -> None:
    """It wrote the lifecycle on the RayCluster, made no quota, and gave no rights beside."""
    world.berth("bob")
    world.spaces["bob"]["metadata"]["annotations"] = {}
    world.clusters["bob"]["metadata"]["annotations"] = {"berth/expires": "1d"}
    world.beside = {
        "berth-bob/rayservices": [annotated("s", {}) | {"spec": {"rayClusterConfig": {}}}]
    }
    world.older = {"bob"}
    assert world.look()["bob"]["did"] == "suspended"
    assert world.patches.keys() == {"rayclusters/bob"}


def test_what_a_raycluster_says_of_its_life_counts_for_nothing(world: World) -> None:
    """Nor does a berth whose RayCluster is gone begin its life again."""
    world.berth("alice", working_hours="mon-fri 08:00-20:00")
    world.clusters["alice"]["metadata"]["annotations"] = {
        "berth/working-hours": "mon-sun 00:00-24:00"
    }
    assert world.look()["alice"]["suspendedBy"] == "hours"
    world.berth("bob")
    world.beside = {"berth-bob/rayclusters": [ray_cluster("other", "berth-bob")]}
    del world.clusters["bob"]
    assert world.look()["bob"]["beside"] == ["suspended RayCluster other"]


def test_labels_of_a_raycluster_keep_no_keeper_away_and_call_none(world: World) -> None:
    """Users of a berth may label its RayCluster; its namespace names the environment."""
    for name in ("bob", "foreign"):
        world.berth(name)
    world.clusters["bob"]["metadata"]["labels"] = {"berth/environment": "other"}
    world.clusters["foreign"]["metadata"]["labels"] = {"berth/environment": "e"}
    world.elsewhere = {"foreign"}
    assert world.look().keys() == {"bob"}


def test_an_api_server_that_answers_badly_ends_the_pass_with_its_name(world: World) -> None:
    world.heads["api"] = lambda handler: answer(handler, b"[]")
    with pytest.raises(
        ApiError, match=f"{world.url}/heads/api/api/v1/namespaces does not answer an object"
    ):
        list(KeeperPass(JsonServer(f"{world.url}/heads/api"), NOW).reports("a=b"))


def test_lengths_of_lifecycles_have_limits() -> None:
    durations = {"90s": 90, "10m": 600, "2h": 7200, "36500d": 3153600000, "3153600000s": 3153600000}
    assert {text: parse_duration(text) for text in durations} == durations
    assert parse_expiry("2199-12-31") == date(2199, 12, 31)
    for text in ("36501d", "3153600001s", "9" * 5000 + "s"):
        with pytest.raises(ValueError, match="longer than 100 years"):
            parse_duration(text)
    with pytest.raises(ValueError, match="the last day that a berth can have"):
        parse_expiry("2200-01-01")


@pytest.mark.parametrize("text", ["0s", "2w", "", "90", "1.5h"])
def test_a_duration_is_a_number_and_a_unit(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write "):
        parse_duration(text)


LIMIT = 256
"""Memory limit of the keeper's container in MiB (tests/golden/lifecycle/keeper.yaml)."""

_RUN = """
import re, sys
from berth.components.programs.keeper import main
code = main(sys.argv[1:])
# Not ru_maxrss, which begins at the memory of the process that started this one.
status = open("/proc/self/status").read()
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.long
def test_a_pass_over_a_thousand_berths_fits_into_the_pod(world: World, tmp_path: Path) -> None:
    spec = yaml.safe_load((GOLDEN / "ray/berth-that-autoscales.yaml").read_text())["spec"]
    for number in range(1000):
        world.berth(f"eng-{number}")
        cluster = world.clusters[f"eng-{number}"]
        cluster["spec"] = spec | cluster["spec"]
        # A live object is twice as large: managed fields and status.
        cluster["metadata"]["managedFields"] = [{"manager": "berth", "fieldsV1": {"f:spec": spec}}]
        cluster["status"] = {"text": "x" * len(json.dumps(spec))}
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(yaml.safe_load(kubeconfig(world.url))))
    command = [
        sys.executable,
        "-c",
        _RUN,
        "--selector=berth/environment=e",
        f"--dashboard={world.url}/heads/{{name}}",
    ]
    environment = os.environ | {"KUBECONFIG": str(config)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report for report in reports if "error" in report] == []
    assert (done.returncode, len(reports)) == (0, 1000), done.stderr
    assert int(done.stderr) < LIMIT
