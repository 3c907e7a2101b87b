from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml

from berth.components.cluster.api import JOBS, NAMESPACES, ClusterApi, ClusterError, ConflictError, within


@dataclass
class Server:
    """An API server that gives one answer and records what it was asked."""

    status: int = 200
    answer: str = "{}"
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    port: int = 0

    @property
    def api(self) -> ClusterApi:
        cluster = {"server": f"http://127.0.0.1:{self.port}"}
        return ClusterApi(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "x",
                    "clusters": [{"name": "x", "cluster": cluster}],
                    "users": [{"name": "x", "user": {}}],
                    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                }
            )
        )

    def refuses(self, status: int, message: str) -> None:
        self.status, self.answer = status, json.dumps({"kind": "Status", "message": message})


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            state.asked.append((self.command, self.path, body))
            self.send_response(state.status)
            self.end_headers()
            self.wfile.write(state.answer.encode())

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield state
        http.shutdown()
        thread.join()


def test_create_sends_the_manifest_and_gives_what_the_server_made(server: Server) -> None:
    server.answer = '{"metadata": {"uid": "1"}}'
    assert server.api.create(NAMESPACES, {"kind": "Namespace"}) == {"metadata": {"uid": "1"}}
    assert server.asked == [("POST", "/api/v1/namespaces", {"kind": "Namespace"})]


def test_delete_means_the_one_object_and_what_belongs_to_it(server: Server) -> None:
    server.api.delete(f"{within('x', JOBS)}/j", "1")
    options = {"propagationPolicy": "Background", "preconditions": {"uid": "1"}}
    assert server.asked == [("DELETE", "/apis/batch/v1/namespaces/x/jobs/j", options)]


@pytest.mark.parametrize("status", [404, 409])
def test_delete_leaves_what_is_gone_or_another(server: Server, status: int) -> None:
    server.refuses(status, "it is not the one")
    server.api.delete("/api/v1/namespaces/x", "1")


def test_text_is_what_the_path_answers(server: Server) -> None:
    server.answer = "Test PASSED\n"
    assert server.api.text("/log", tailLines="20") == "Test PASSED\n"
    assert server.asked[0][1] == "/log?tailLines=20"


def test_a_missing_right_is_named(server: Server) -> None:
    server.refuses(403, 'namespaces is forbidden: User "alice" cannot create resource "namespaces" in API group ""')
    with pytest.raises(ClusterError, match=r'you lack a right in the cluster.*"alice" cannot create.*"namespaces"'):
        server.api.create(NAMESPACES, {})


def test_other_refusals_are_not_called_a_missing_right(server: Server) -> None:
    server.refuses(403, 'jobs "j" is forbidden: unable to create: namespace x is being terminated')
    with pytest.raises(ClusterError, match="refused: 403 jobs") as raised:
        server.api.create(within("x", JOBS), {})
    assert "right" not in str(raised.value)


def test_a_taken_name_is_a_conflict(server: Server) -> None:
    server.refuses(409, 'namespaces "x" already exists')
    with pytest.raises(ConflictError, match="already exists"):
        server.api.create(NAMESPACES, {})


def test_a_namespace_that_is_gone_is_told(server: Server) -> None:
    server.refuses(404, "not found")
    with pytest.raises(ClusterError, match="is its namespace gone"):
        server.api.create(within("x", JOBS), {})
