"""Small HTTP servers on loopback, and kubeconfigs that lead to them."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

Handler = http.server.BaseHTTPRequestHandler
POLL_SECONDS = 0.02
"""Time within which a server notices its end; Python's own half a second is one for each test."""


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # as many callers at once as an API server takes; Python's own takes 5


@contextmanager
def serving(handle: Callable[[Handler], None]) -> Iterator[str]:
    """Serve all requests by one function; yields the server's address."""

    class Play(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            handle(self)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - http.server's names

        def log_message(self, *_arguments: Any) -> None:
            """Print nothing."""

    with _Server(("127.0.0.1", 0), Play) as server:
        thread = threading.Thread(target=server.serve_forever, args=[POLL_SECONDS])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def body_of(handler: Handler) -> Any:
    """JSON of a request; None for no body."""
    size = int(handler.headers.get("Content-Length") or 0)
    return json.loads(handler.rfile.read(size)) if size else None


def answer(handler: Handler, body: Any, status: int = 200) -> None:
    """Answer a request with bytes, or with JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def kubeconfig(server: str, user: dict[str, Any] | None = None, **cluster: Any) -> str:
    """Text of a kubeconfig with one context."""
    named = {
        "clusters": {"cluster": {"server": server, **cluster}},
        "users": {"user": user or {}},
        "contexts": {"context": {"cluster": "it", "user": "it"}},
    }
    lists = {key: [{"name": "it", **value}] for key, value in named.items()}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "it"} | lists)
