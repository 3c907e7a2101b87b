"""Small server in the place of Jupyter's, for tests without that package."""

from pathlib import Path

# Routes and answers of jupyter_server 2.21: services/api/handlers.py and services/shutdown.py.
_MAIN = """
import os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

assert "JUPYTER_TOKEN" not in os.environ
token = open(os.environ["JUPYTER_TOKEN_FILE"]).read()
given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        right = self.headers.get("Authorization") == f"token {token}"
        self.send_response(200 if right else 403)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return right

    def do_POST(self):
        if self.do_GET() and self.path == "/api/shutdown":
            threading.Thread(target=server.shutdown).start()

server = ThreadingHTTPServer((given["--ServerApp.ip"], int(given["--ServerApp.port"])), Handler)
server.serve_forever()
"""


def write_jupyter(folder: Path) -> None:
    """Write the package into a folder for PYTHONPATH."""
    package = folder / "jupyter_server"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(_MAIN)
