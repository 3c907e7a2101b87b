"""`python -m berth.lab.realnode.fabric LAYOUT`: creates and addresses the node's stand-in NICs.

It also serves their attributes to DraNet. It has the place of a node's network daemon and of Google
Cloud's metadata server: a NIC that comes back from a pod has lost its address and gets it again.
DraNet itself is unchanged: it asks for attributes by its own webhook.
"""

import contextlib
import json
import select
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from berth.lab.realnode import nics
from berth.lab.realnode.configuration import FABRIC_PORT
from berth.lab.realnode.layout import GATEWAY, NICS, Layout, read

_LINKS = 1  # RTMGRP_LINK of linux/rtnetlink.h
_LOOK_SECONDS = 5.0
_MESSAGE_BYTES = 1 << 16
_EXISTS = "File exists"


def _ip(commands: list[str]) -> None:
    """Run all commands. A failure is only printed: an interface may be moving into a pod."""
    done = subprocess.run(
        ["ip", "-force", "-batch", "-"],
        input="".join(f"{command}\n" for command in commands),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    for line in done.stderr.splitlines():
        if _EXISTS not in line and not line.startswith("Command failed"):
            print(line, flush=True)  # noqa: T201 (the log)


def _addresses() -> dict[str, bool]:
    """Interfaces on the node, and whether each has an address."""
    listing = subprocess.run(
        ["ip", "-json", "-4", "address"], capture_output=True, check=True, timeout=30
    )
    addressed = {
        link["ifname"] for link in json.loads(listing.stdout or b"[]") if link.get("addr_info")
    }
    return {path.name: path.name in addressed for path in Path("/sys/class/net").iterdir()}


def repair(layout: Layout) -> None:
    """Create missing NICs (a pod that ends without DraNet takes them along), and address NICs."""
    there = _addresses()
    commands: list[str] = []
    for number, nic in enumerate(NICS):
        gone = GATEWAY.format(number) not in there
        if gone:
            commands += nics.plug(layout, number)
        if gone or there.get(nic) is False:
            commands += nics.configure(layout, number)
    if commands:
        _ip(commands)


def watch(layout: Layout) -> None:
    """Repair at each change of an interface, for ever."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as changes:
        changes.bind((0, _LINKS))
        while True:
            repair(layout)
            select.select([changes], [], [], _LOOK_SECONDS)
            with contextlib.suppress(OSError):
                while changes.recv(_MESSAGE_BYTES, socket.MSG_DONTWAIT):
                    pass


class _FabricHandler(BaseHTTPRequestHandler):
    """Connection of DraNet's."""

    protocol_version = "HTTP/1.1"
    server_version = "berth-lab"

    def do_GET(self) -> None:
        """Answer what is served: attributes and nothing else."""
        self._send({"cloudProvider": True, "profileProvider": False})

    def do_POST(self) -> None:
        """Answer the attributes of one interface; the node's own configuration of it holds."""
        question = json.loads(
            self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"
        )
        known = self.path == "/GetDeviceAttributes" and question.get("name") in NICS
        self._send(nics.attributes(NICS.index(question["name"])) if known else {})

    def _send(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_arguments: Any) -> None:
        """Print nothing: DraNet asks often."""


def main() -> None:
    """Serve for ever."""
    layout = read(sys.argv[1])
    _ip(nics.rules(layout))
    repair(layout)
    server = ThreadingHTTPServer((str(layout.node_address), FABRIC_PORT), _FabricHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    watch(layout)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
