"""Jupyter server in a head's container: started, found again or stopped, over `kubectl exec`.

berth sends this text to a Python of the container. The server listens on the container's loopback,
where `kubectl port-forward` reaches it, and asks for a token, which is in files that only the
container's user can read. The answer is one JSON object. Python 3.9 and later; only the standard
library.

Answers to (read): jupyter_server 2.21, auth/identity.py (the token is the content of the file that
JUPYTER_TOKEN_FILE names, unless JUPYTER_TOKEN is set), services/api/handlers.py (`/api/status`) and
services/shutdown.py (`/api/shutdown`, which ends the kernels first).
"""

from __future__ import annotations

import fcntl
import http.client
import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

START = "start"
FIND = "find"
STOP = "stop"

SECONDS = 120
"""Longest time that a server takes to start or to stop."""

PORT_VARIABLE = "BERTH_NOTEBOOK_PORT"
"""Variable of a head of which only certain ports can be reached: the port for Jupyter."""

_LOOPBACK = "127.0.0.1"
_ANSWER_SECONDS = 10
_INTERVAL_SECONDS = 0.1
_LOG_LINES = 5

# Pages of the packages that add one to Jupyter's server, the best first.
_PAGES = {"jupyterlab": "/lab", "notebook": "/tree"}


class FailedError(Exception):
    """Server that does not start, answer or stop."""


class Notebook:
    """Jupyter server of this user, known by files of a private folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.stat()
        if state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise FailedError(f"others can write to {folder}; remove it")
        self._note = folder / "server.json"
        self._token = folder / "token"
        self._log = folder / "log"
        # Two calls at once start one server.
        self._lock = (folder / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def running(self) -> dict[str, Any]:
        """Return the running server; {} for none."""
        try:
            server: dict[str, Any] = json.loads(self._note.read_text())
        except (OSError, ValueError):
            return {}
        # Another server at this port would not accept the token.
        return server if _ask(server) == http.client.OK else {}

    def start(self, home: Path) -> dict[str, Any]:
        """Return the running server, or a new one.

        Args:
            home: folder of the notebooks, if it is there.
        """
        if server := self.running():
            return server
        if importlib.util.find_spec("jupyter_server") is None:
            return {"missing": sys.executable}
        folder = home if home.is_dir() else Path.home()
        server = {
            "port": int(os.environ.get(PORT_VARIABLE) or _free_port()),
            "token": secrets.token_hex(24),
            "page": _best_page(),
            "folder": str(folder),
        }
        _write(self._token, server["token"])
        self._run(server)
        _write(self._note, json.dumps(server))
        return server

    def stop(self) -> dict[str, Any]:
        """Stop the running server with its kernels; return whether there was one."""
        server = self.running()
        if server:
            _ask(server, "POST", "/api/shutdown")
            _until(lambda: _ask(server) is None, "the server does not stop")
        for file in (self._note, self._token):
            file.unlink(missing_ok=True)
        return {"stopped": bool(server)}

    def _run(self, server: dict[str, Any]) -> None:
        variables = {name: value for name, value in os.environ.items() if name != "JUPYTER_TOKEN"}
        variables["JUPYTER_TOKEN_FILE"] = str(self._token)
        # In a virtual environment, `!pip` of a notebook is the environment's.
        variables["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        )
        command = [
            *(sys.executable, "-m", "jupyter_server", "--no-browser"),
            f"--ServerApp.ip={_LOOPBACK}",
            f"--ServerApp.port={server['port']}",
            "--ServerApp.port_retries=0",
            "--ServerApp.base_url=/",
            f"--ServerApp.default_url={server['page']}",
            f"--ServerApp.root_dir={server['folder']}",
            *(["--allow-root"] if os.getuid() == 0 else []),
        ]
        with self._log.open("w") as log:
            process = subprocess.Popen(
                command,
                cwd=server["folder"],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The server outlives this program.
                start_new_session=True,
            )

        def answers() -> bool:
            if process.poll() is not None:
                raise FailedError(f"Jupyter ended at its start: {self._end_of_log()}")
            return _ask(server) == http.client.OK

        try:
            _until(answers, "Jupyter does not answer")
        except FailedError:
            process.kill()
            raise

    def _end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").split("\n")
        return " / ".join([line.strip() for line in lines if line.strip()][-_LOG_LINES:])


def _ask(server: dict[str, Any], method: str = "GET", path: str = "/api/status") -> int | None:
    """Return the status of an answer; None if no server listens."""
    connection = http.client.HTTPConnection(_LOOPBACK, server["port"], timeout=_ANSWER_SECONDS)
    try:
        connection.request(method, path, headers={"Authorization": f"token {server['token']}"})
        return connection.getresponse().status
    except ConnectionError:
        return None
    except (OSError, http.client.HTTPException) as error:
        raise FailedError(f"Jupyter at port {server['port']} does not answer: {error}") from None
    finally:
        connection.close()


def _until(condition: Any, problem: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise FailedError(f"{problem} within {SECONDS} s")
        time.sleep(_INTERVAL_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _best_page() -> str:
    for module, page in _PAGES.items():
        if importlib.util.find_spec(module):
            return page
    return "/"


def _write(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)


def answer_to(verb: str, home: str) -> dict[str, Any]:
    """Return a server, or an object with `missing`, `stopped` or `failed`."""
    try:
        notebook = Notebook(Path(tempfile.gettempdir()) / f"berth-notebook-{os.getuid()}")
        if verb == START:
            return notebook.start(Path(home))
        return notebook.stop() if verb == STOP else notebook.running()
    except (FailedError, OSError) as error:
        return {"failed": str(error)}


if __name__ == "__main__":
    print(json.dumps(answer_to(*sys.argv[1:])))  # noqa: T201 - the program's output
