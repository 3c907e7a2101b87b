"""Programs of a simulated head: ways to its Ray, and Ray itself with the log of a container.

KWOK runs `relay` for each connection to a forwarded port, and `enter` for a command in the head's
container. The lab's controller, which both ask for the connection, starts Ray, by `log`. Only the
standard library, so that a start takes no time.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

DASHBOARD = "8265"
ENVIRONMENT = "environment.json"
"""File of a head's folder with the variables of its container."""

_CHUNK = 65536
_ANSWERS = b" 200 "


def _connected(way: str, head: str, port: str) -> tuple[socket.socket, str]:
    """Return a connection to a port of a head, and why it leads nowhere, or ""."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(way)
    connection.sendall(f"CONNECT {head}:{port} HTTP/1.1\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer and (byte := connection.recv(1)):
        answer += byte
    if _ANSWERS in answer.partition(b"\r\n")[0]:
        return connection, ""
    with connection.makefile() as rest:
        return connection, rest.read() or "the lab's controller does not answer: berth lab status"


def relay(way: str, head: str, port: str) -> None:
    """Copy the standard streams to a port of a head, and back."""
    connection, problem = _connected(way, head, port)
    if problem and port == DASHBOARD:
        # A client of the dashboard shows what it answers; what kubectl says is easily missed.
        text = (
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length:"
            f" {len(problem.encode())}\r\n"
        )
        os.write(1, f"{text}\r\n{problem}".encode())
    if problem:
        sys.exit(problem)

    def send() -> None:
        while chunk := os.read(0, _CHUNK):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    while chunk := connection.recv(_CHUNK):
        os.write(1, chunk)
    os._exit(0)  # the other direction may wait for ever


def enter(name: str, *arguments: str) -> None:
    """Become a program of a head, whose Ray runs."""
    way, head, folder = os.environ["BERTH_LAB_HEAD"].split()
    connection, problem = _connected(way, head, DASHBOARD)
    connection.close()
    if problem:
        sys.exit(problem)
    environment = json.loads((Path(folder) / ENVIRONMENT).read_text())
    if "TERM" in os.environ:
        environment["TERM"] = os.environ["TERM"]
    program = shutil.which(name, path=environment["PATH"])
    if program is None:
        sys.exit(f"{name}: not found in the head")
    os.chdir(environment["HOME"])
    os.execve(program, [name, *arguments], environment)  # noqa: S606 - no shell is needed


def log(folder: str, *command: str) -> None:
    """Run a command in a head, and write what it prints as the log of a container has it."""
    environment = json.loads((Path(folder) / ENVIRONMENT).read_text())
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=environment["HOME"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    sys.exit(follow(process, sys.stdout))


def follow(process: "subprocess.Popen[str]", container_log: IO[str]) -> int:
    """Write what a process prints as the log of a container has it; return its exit code."""
    for line in process.stdout or ():
        container_log.write(
            f"{datetime.now(UTC).isoformat().replace('+00:00', 'Z')} stdout F {line}"
        )
        container_log.flush()
    return process.wait()


if __name__ == "__main__":
    programs: dict[str, Callable[..., None]] = {"relay": relay, "enter": enter, "log": log}
    programs[sys.argv[1]](*sys.argv[2:])
