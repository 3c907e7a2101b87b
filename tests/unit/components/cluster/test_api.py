"""Kubernetes client against a server of the test: requests, answers and failures."""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from berth.components.cluster import api
from berth.components.cluster.api import (
    JOBS,
    NAMESPACES,
    NODES,
    ClusterApi,
    ClusterError,
    ConflictError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    in_namespace,
    unreachable,
)
from berth.components.core.errors import BerthError
from berth.components.ray.live import suspension
from tests.unit.serving import Handler, answer, body_of, kubeconfig, serving


@dataclass
class Server:
    """An API server that gives one answer and records what it was asked.

    Attributes:
        busy: answers 503 that come before the answer.
        cut: answers that break off in their body, before the answer.
        lost: answers that never begin, before the answer.
        size: value of Content-Length; more than the answer has cuts it off.
        answers: statuses and answers of the next requests, in place of the one answer.
    """

    status: int = 200
    answer: str = "{}"
    busy: int = 0
    cut: int = 0
    lost: int = 0
    size: int | None = None
    answers: list[tuple[int, str]] = field(default_factory=list)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    authorization: str | None = None
    url: str = ""

    @property
    def api(self) -> ClusterApi:
        return ClusterApi(kubeconfig(self.url))

    def refuses(self, status: int, message: str) -> None:
        self.status = status
        self.answer = json.dumps({"kind": "Status", "message": message})

    def handle(self, handler: Handler) -> None:
        """Answer a request."""
        self.asked.append((handler.command, handler.path, body_of(handler)))
        self.authorization = handler.headers.get("Authorization")
        if self.busy:
            self.busy -= 1
            answer(handler, b"", 503)
            return
        if self.lost:
            self.lost -= 1
            handler.close_connection = True
            return
        if self.answers:
            self.status, self.answer = self.answers.pop(0)
        handler.send_response(self.status)
        if self.cut or self.size is not None:
            handler.send_header("Content-Length", str(1000 if self.cut else self.size))
        handler.end_headers()
        handler.wfile.write(b"{" if self.cut else self.answer.encode())
        self.cut = max(0, self.cut - 1)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()
    with serving(state.handle) as state.url:
        yield state


def test_create_sends_the_manifest_and_gives_what_the_server_made(server: Server) -> None:
    server.answer = '{"metadata": {"uid": "1"}}'
    assert server.api.create(NAMESPACES, {"kind": "Namespace"}) == {"metadata": {"uid": "1"}}
    assert server.asked == [("POST", "/api/v1/namespaces", {"kind": "Namespace"})]


def test_delete_means_the_one_object_and_what_belongs_to_it(server: Server) -> None:
    server.api.delete(f"{in_namespace('x', JOBS)}/j", "1")
    options = {"propagationPolicy": "Background", "preconditions": {"uid": "1"}}
    assert server.asked == [("DELETE", "/apis/batch/v1/namespaces/x/jobs/j", options)]


@pytest.mark.parametrize("status", [404, 409])
def test_delete_leaves_what_is_gone_or_another(server: Server, status: int) -> None:
    server.refuses(status, "it is not the one")
    server.api.delete("/api/v1/namespaces/x", "1")


def test_a_log_steers_no_terminal_read_at_once_or_by_its_lines(server: Server) -> None:
    server.answer = "\x1b[32mgood\x1b[0m\n\x1b]52;c;eA==\x07\n"
    shown = ["\x1b[32mgood\x1b[0m", "\\x1b]52;c;eA==\\x07"]
    assert server.api.text("/log").splitlines() == shown
    assert list(server.api.lines("/log")) == shown


def test_text_is_what_the_path_answers(server: Server) -> None:
    server.answer = "Test PASSED\n"
    assert server.api.text("/log", tailLines="20") == "Test PASSED\n"
    assert server.asked[0][1] == "/log?tailLines=20"


def test_a_missing_right_is_named(server: Server) -> None:
    server.refuses(
        403,
        'namespaces is forbidden: User "alice" cannot create resource "namespaces" in API group ""',
    )
    with pytest.raises(
        ClusterError, match=r'you lack a right in the cluster.*"alice" cannot create.*"namespaces"'
    ):
        server.api.create(NAMESPACES, {})


def test_other_refusals_are_not_called_a_missing_right(server: Server) -> None:
    server.refuses(403, 'jobs "j" is forbidden: unable to create: namespace x is being terminated')
    with pytest.raises(ClusterError, match="refused: 403 jobs") as raised:
        server.api.create(in_namespace("x", JOBS), {})
    assert "right" not in str(raised.value)


def test_a_taken_name_is_a_conflict(server: Server) -> None:
    server.refuses(409, 'namespaces "x" already exists')
    with pytest.raises(ConflictError, match="already exists"):
        server.api.create(NAMESPACES, {})


def test_what_is_missing_is_none_for_a_reader_and_an_error_for_a_writer(server: Server) -> None:
    server.refuses(404, 'namespaces "x" not found')
    assert server.api.get("/api/v1/namespaces/x") is None
    assert server.api.list(NODES) == ([], "")
    assert server.api.text("/log") == ""
    assert list(server.api.lines("/log")) == []
    assert list(server.api.events(NODES, "1", 1)) == []
    with pytest.raises(NotFoundError, match='404 namespaces "x" not found'):
        server.api.create(in_namespace("x", JOBS), {})


def test_a_refusal_has_its_parts_as_fields(server: Server) -> None:
    server.status = 409
    server.answer = json.dumps(
        {"message": "it is there", "reason": "AlreadyExists", "details": {"kind": "jobs"}}
    )
    with pytest.raises(ConflictError) as raised:
        server.api.request("POST", NAMESPACES, {})
    error = raised.value
    assert (error.status, error.message, error.details) == (409, "it is there", {"kind": "jobs"})


@pytest.mark.parametrize(
    "answer", ["", "Internal Server Error", "[]", '{"kind": "Status", "message": "etcd is gone"}']
)
def test_an_internal_error_is_one_clear_error_whatever_its_body(
    server: Server, answer: str
) -> None:
    server.status = 500
    server.answer = answer
    with pytest.raises(RefusedError, match=r"^the API server refused: 500 \S") as raised:
        server.api.list(NODES)
    assert isinstance(raised.value, BerthError)


def test_an_answer_that_is_cut_off_is_an_unreachable_server(server: Server) -> None:
    server.answer = '{"items": ['
    server.size = 1000
    for ask in (
        lambda: server.api.list(NODES),
        lambda: server.api.text("/log"),
        lambda: list(server.api.lines("/log")),
        lambda: list(server.api.events(NODES, "1", 1)),
    ):
        with pytest.raises(UnreachableError, match=f"{server.url} does not answer"):
            ask()


def test_an_answer_that_breaks_off_is_asked_for_again_but_for_a_creation(server: Server) -> None:
    server.answer = json.dumps({"items": [{"kind": "Node"}]})
    server.cut = 2
    assert server.api.list(NODES)[0] == [{"kind": "Node"}]
    server.cut = 1
    server.api.patch("/api/v1/namespaces/x", {}, "berth-test")
    server.cut = 1
    with pytest.raises(UnreachableError):
        server.api.create(NAMESPACES, {})
    assert [method for method, _, _ in server.asked] == ["GET"] * 3 + ["PATCH"] * 2 + ["POST"]


def test_an_answer_that_is_lost_is_asked_for_again_but_for_a_creation(server: Server) -> None:
    server.lost = 1
    server.api.patch("/api/v1/namespaces/x", {}, "berth-test")
    server.lost = 1
    with pytest.raises(UnreachableError):
        server.api.create(NAMESPACES, {})
    assert [method for method, _, _ in server.asked] == ["PATCH"] * 2 + ["POST"]


def test_a_wait_outlasts_a_server_that_is_away(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    condition = {"type": "RayClusterSuspended", "status": "True"}
    cluster = {"metadata": {"name": "x", "namespace": "x"}, "spec": {"suspend": True}}
    suspended = cluster | {"status": {"state": "suspended", "conditions": [condition]}}
    texts: list[str] = []
    answers = [200, 500, 500]

    def away(_seconds: float) -> None:
        server.status = answers.pop()

    monkeypatch.setattr(time, "sleep", away)
    server.status = 500
    server.answer = json.dumps({"items": [suspended]})
    monkeypatch.setattr(suspension, "pods_of", lambda *_: [])
    assert (
        suspension.wait_for_pods(
            server.api, ("x", "x"), suspended=True, seconds=60, report=texts.append
        )
        == []
    )
    assert texts == [
        "waiting: the API server refused: 500 the server answered with HTTP status 500"
    ]
    server.refuses(403, "no")
    with pytest.raises(RefusedError):
        suspension.wait_for_pods(server.api, ("x", "x"), suspended=True, seconds=60)


def test_an_answer_that_is_not_json_is_an_error(server: Server) -> None:
    server.answer = "<html>"
    with pytest.raises(ClusterError, match="answers /version with something other than JSON"):
        server.api.get("/version")
    with pytest.raises(ClusterError, match="breaks off a watch"):
        list(server.api.events(NODES, "1", 1))


def test_a_refused_connection_is_an_unreachable_server() -> None:
    # Nothing ever listens on port 1.
    with pytest.raises(
        UnreachableError, match=r"127\.0\.0\.1:1 does not answer: .*Connection refused"
    ) as raised:
        ClusterApi(kubeconfig("http://127.0.0.1:1")).list(NODES)
    assert "object at 0x" not in str(raised.value)


def test_a_server_that_refuses_is_reachable(server: Server) -> None:
    assert unreachable(kubeconfig(server.url)) is None
    server.refuses(403, "no")
    assert unreachable(kubeconfig(server.url)) is None
    assert unreachable("not a kubeconfig") is None


def test_a_server_that_takes_connections_and_stays_silent_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api, "_CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = unreachable(kubeconfig(f"http://127.0.0.1:{silent.getsockname()[1]}"))
    assert error
    assert error.remedy.startswith("start the lab: make lab; if the cluster is gone for good")


@pytest.mark.parametrize(
    ("server", "lab"), [("https://127.0.0.1:6443", True), ("https://203.0.113.1", False)]
)
def test_the_way_out_of_a_cluster_that_does_not_answer(server: str, *, lab: bool) -> None:
    remedy = UnreachableError(server, OSError("no route")).remedy
    assert ("make lab" in remedy) == lab
    assert "PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh -s STACK" in remedy


def test_a_server_without_tls_is_an_unreachable_server(server: Server) -> None:
    # urllib3 counts such an error as none of connect, read and status: it must not be tried for
    # ever.
    api = ClusterApi(kubeconfig(server.url).replace("http://", "https://"))
    with pytest.raises(UnreachableError):
        api.get("/version")


def test_a_busy_server_is_asked_again(server: Server) -> None:
    server.busy = 1
    assert server.api.create(NAMESPACES, {}) == {}
    assert len(server.asked) == 2


def test_a_watch_gives_all_events_and_its_errors(server: Server) -> None:
    events = [
        {"type": kind, "object": {"name": kind}}
        for kind in ("ADDED", "BOOKMARK", "MODIFIED", "DELETED")
    ]
    server.answer = "\n".join(map(json.dumps, events)) + "\n"
    assert list(server.api.events(NODES, "7", 3, labelSelector="a=b")) == events
    assert "resourceVersion=7&timeoutSeconds=3" in server.asked[0][1]
    server.answer = json.dumps(
        {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}
    )
    with pytest.raises(ClusterError, match="410 too old resource version"):
        list(server.api.events(NODES, "1", 3))


def test_changes_are_sent_as_patches_of_a_field_manager(server: Server) -> None:
    server.api.patch("/api/v1/nodes/n", {"a": 1}, "berth")
    server.api.apply("/api/v1/nodes/n", '{"b": 2}', "berth")
    server.api.request(
        "PATCH", "/api/v1/nodes/n", [{"op": "add"}], {}, "application/json-patch+json"
    )
    assert [(path, body) for _, path, body in server.asked] == [
        ("/api/v1/nodes/n?fieldManager=berth", {"a": 1}),
        ("/api/v1/nodes/n?fieldManager=berth&force=true", {"b": 2}),
        ("/api/v1/nodes/n", [{"op": "add"}]),
    ]


def test_credentials_of_a_plugin_are_sent(server: Server, tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    answer = {"kind": "ExecCredential", "apiVersion": version, "status": {"token": "secret"}}
    (tmp_path / "answer").write_text(json.dumps(answer))
    command = {
        "apiVersion": version,
        "command": "cat",
        "args": [str(tmp_path / "answer")],
        "interactiveMode": "Never",
    }
    ClusterApi(kubeconfig(server.url, {"exec": command})).list(NODES)
    assert server.authorization == "Bearer secret"


@pytest.mark.parametrize("command", ["false", "there-is-no-such-plugin"])
def test_a_plugin_that_gives_no_credentials_is_named(command: str) -> None:
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command,
            "interactiveMode": "Never",
        }
    }
    with pytest.raises(ClusterError, match=f"credential plugin {command} gives no credentials"):
        ClusterApi(kubeconfig("http://127.0.0.1:1", user))


@pytest.mark.parametrize("text", ["", "a: [", "[]", "clusters: []"])
def test_a_text_that_is_not_a_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(ClusterError, match="the kubeconfig cannot be used"):
        ClusterApi(text)


def test_a_large_collection_comes_in_pages(server: Server) -> None:
    pages = [
        {"items": [{"n": 1}], "metadata": {"resourceVersion": "7", "continue": "next page"}},
        {"items": [{"n": 2}], "metadata": {"resourceVersion": "7"}},
    ]
    server.answers = [(200, json.dumps(page)) for page in pages]
    assert server.api.list(NODES, labelSelector="a=b") == ([{"n": 1}, {"n": 2}], "7")
    assert [path for _, path, _ in server.asked] == [
        "/api/v1/nodes?labelSelector=a%3Db&limit=500",
        "/api/v1/nodes?labelSelector=a%3Db&limit=500&continue=next%20page",
    ]


def test_pages_of_a_forgotten_version_begin_again_as_one(server: Server) -> None:
    first = {"items": [{"n": 1}], "metadata": {"resourceVersion": "7", "continue": "next"}}
    whole = {"items": [{"n": 1}, {"n": 2}], "metadata": {"resourceVersion": "9"}}
    server.answers = [(200, json.dumps(first)), (410, "{}"), (200, json.dumps(whole))]
    assert server.api.list(NODES) == (whole["items"], "9")
    assert server.asked[-1][1] == "/api/v1/nodes"
