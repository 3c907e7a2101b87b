"""The API server's way to pods: this machine and the real node are reached, and nobody else."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from berth.lab.devices.egress import Egress
from berth.lab.errors import LabError
from berth.lab.ray import program


def echo(server: socket.socket) -> None:
    """Send back what one connection sends, and close it."""
    connection, _ = server.accept()
    with connection:
        while data := connection.recv(100):
            connection.sendall(data)


def relayed(folder: Path, port: int) -> subprocess.CompletedProcess[str]:
    """Say hello to a port of a simulated head as KWOK does."""
    words = [
        sys.executable,
        "-I",
        program.__file__,
        "relay",
        str(folder / "egress.sock"),
        "berth-bob/bob-head-1",
    ]
    return subprocess.run(
        [*words, str(port)], input="hello", capture_output=True, text=True, timeout=120, check=False
    )


def test_a_connection_is_passed_on_in_both_directions_or_refused(tmp_path: Path) -> None:
    def connect(to: str) -> tuple[socket.socket, str]:
        near = socket.socket(socket.AF_UNIX)
        near.settimeout(20)
        near.connect(str(tmp_path / "egress.sock"))
        near.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
        return near, near.recv(1000).decode().partition("\r\n")[0]

    def dial_pod(head: str, port: int) -> socket.socket:
        if "/" not in head:
            raise ConnectionRefusedError("a simulated pod")
        if (head, port) != ("berth-bob/bob-head-1", 8265):
            raise LabError("Ray does not start", "make room")
        return socket.create_connection(far.getsockname())

    with (
        socket.create_server(("127.0.0.1", 0)) as far,
        Egress(tmp_path / "egress.sock", lambda host: host == "10.199.0.1", dial_pod) as egress,
    ):
        for target, arguments in ((egress.serve_forever, ()), (echo, (far,))):
            threading.Thread(target=target, args=arguments, daemon=True).start()
        near, answer = connect(f"127.0.0.1:{far.getsockname()[1]}")
        assert answer == "HTTP/1.1 200 OK"
        near.sendall(b"hello")
        near.shutdown(socket.SHUT_WR)
        assert near.recv(100) == b"hello"
        assert connect("10.0.0.9:8265")[1] == "HTTP/1.1 502 Bad Gateway", (
            "an address of a simulated pod"
        )
        with pytest.raises(ConnectionRefusedError, match="simulated pod"):
            egress.dial("CONNECT example.com:80 HTTP/1.1")
        with pytest.raises(ValueError, match="not CONNECT"):
            egress.dial("GET 10.199.0.1:80 HTTP/1.1")
        far_again = threading.Thread(target=echo, args=(far,), daemon=True)
        far_again.start()
        assert relayed(tmp_path, 8265).stdout == "hello"
        refused = relayed(tmp_path, 10001)
        assert (refused.returncode, "Ray does not start" in refused.stderr) == (1, True)
        egress.shutdown()
