"""Key service of the tests' stacks: in place of a passphrase, from which each run of Pulumi derives
a key in a million rounds, half of the CPU of a short run.

The paths and fields are those that Pulumi asks for with a key `hashivault://…` (Go CDK,
secrets/hashivault/vault.go). A key of these stacks is as open as the lab's passphrase: what is
"encrypted" is only marked, as Vault marks it.
"""

from __future__ import annotations

import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NONE = ("env", "-u", "PULUMI_OPTION_SECRETS_PROVIDER")
"""Beginning of a command that makes a stack with a passphrase."""

_ENCRYPTED = "vault:v1:"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        """Answer `transit/encrypt/KEY` and `transit/decrypt/KEY`."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/v1/transit/encrypt/"):
            found = {"ciphertext": _ENCRYPTED + asked["plaintext"]}
        else:
            found = {"plaintext": asked["ciphertext"].removeprefix(_ENCRYPTED)}
        answer = json.dumps({"data": found}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Write nothing to stderr."""


@cache
def environment() -> dict[str, str]:
    """Return the variables with which Pulumi makes stacks with such a key, and uses them.

    The service is a thread of this process.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return {
        "VAULT_SERVER_URL": f"http://127.0.0.1:{server.server_port}",
        "VAULT_SERVER_TOKEN": "key-of-the-tests",
        "PULUMI_OPTION_SECRETS_PROVIDER": "hashivault://berth",
    }
