"""`python -m berth.lab.google_api.server PORT`: the stand-in's HTTP server, on loopback."""

import json
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from berth.lab.google_api.addresses import TOKEN
from berth.lab.google_api.answers import Google
from berth.lab.home import LabHome
from berth.lab.plugins.gcp.errors import GoogleApiError, ProviderError

SIMULATED_HEADER = "X-Berth-Simulated"
"""Says in every answer that nothing of it is Google's."""

_SECONDS = 3600
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
}


class _ApiHandler(BaseHTTPRequestHandler):
    """Connection."""

    protocol_version = "HTTP/1.1"
    server_version = "berth-lab"

    def __init__(self, home: LabHome, *arguments: Any) -> None:
        self._home = home
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer a read."""
        if self.path == "/healthz":
            self._send(200, {"status": "ok"})
        else:
            self._answer({})

    def do_POST(self) -> None:
        """Give out the token, or answer a question that is put by POST."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/token":
            kind = "urn:ietf:params:oauth:token-type:access_token"
            token = {
                "access_token": TOKEN,
                "issued_token_type": kind,
                "token_type": "Bearer",
                "expires_in": _SECONDS,
            }
            self._send(200, token)
            return
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = None
        if isinstance(body, dict):
            self._answer(body)
        else:
            self._refuse(400, "the body is no JSON object", "badRequest")

    def _answer(self, body: dict[str, Any]) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._refuse(401, "Request had invalid authentication credentials.", "unauthorized")
            return
        url = urlsplit(self.path)
        service, _, rest = url.path.lstrip("/").partition("/")
        path = unquote(rest.partition("/")[2])  # below the version
        try:
            self._send(200, Google(self._home, parse_qs(url.query), body).answer(service, path))
        except GoogleApiError as error:
            self._refuse(error.code, error.message, error.reason, f"{service}.googleapis.com")
        except ProviderError as error:
            self._refuse(500, str(error), "backendError")

    def _refuse(self, code: int, message: str, reason: str, service: str = "") -> None:
        """An error in the shape of https://docs.cloud.google.com/apis/design/errors."""
        error: dict[str, Any] = {
            "code": code,
            "message": message,
            "status": _STATUS.get(code, "INTERNAL"),
            "errors": [{"message": message, "domain": "global", "reason": reason}],
        }
        if service:
            info = {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "domain": "googleapis.com",
            }
            error["details"] = [info | {"metadata": {"service": service}}]
        self._send(code, {"error": error})

    def _send(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header(SIMULATED_HEADER, f"the lab in {self._home.root}")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 (the base class's name)
        """Log nothing but errors."""


class _ApiServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32


def server(home: LabHome, port: int) -> ThreadingHTTPServer:
    """A server that is bound, and answers once it is told to serve; port 0 takes any free one."""
    return _ApiServer(("127.0.0.1", port), partial(_ApiHandler, home))


if __name__ == "__main__":
    with server(LabHome.current(), int(sys.argv[1])) as stand_in:
        stand_in.serve_forever()
