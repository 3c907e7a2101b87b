"""`berth notebook` with Jupyter itself, installed into a home: a kernel that reaches Ray, its
address, and what is left after Ctrl-C, a suspension and `--stop`.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websocket

from berth.components.programs.logins import OPEN_UNTIL
from tests.lab.project import started
from tests.real.conftest import POOL, RealNode, berth, eventually, home, printed

pytestmark = [pytest.mark.real, pytest.mark.long]

NAME = "nell"
CODE = "import ray; ray.init(logging_level='ERROR'); print('nodes', len(ray.nodes()))"
_SECONDS = 60


class Jupyter:
    """Jupyter at the address that berth printed."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.token = str(document["token"])
        self._address = str(document["url"]).partition("/lab?")[0]

    def ask(self, path: str, token: str = "", method: str = "GET") -> tuple[int, Any]:
        """Status and JSON of an answer."""
        request = urllib.request.Request(self._address + path, method=method)  # noqa: S310 - loopback
        request.add_header("Authorization", f"token {token}")
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - loopback
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, None

    def run(self, kernel: str, code: str) -> str:
        """Output of code that a kernel runs, by Jupyter's messaging protocol."""
        url = f"{self._address.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels"
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": "execute_request",
            "username": "",
            "session": "test",
        }
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}}
        message = {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
        }
        connection = websocket.create_connection(
            url, _SECONDS, header=[f"Authorization: token {self.token}"]
        )
        with contextlib.closing(connection):
            connection.send(json.dumps(message))
            output = ""
            while True:
                answer = json.loads(connection.recv())
                if answer["parent_header"].get("msg_id") != header["msg_id"]:
                    continue
                output += str(answer["content"].get("text", ""))
                assert answer["msg_type"] != "error", answer["content"]
                if answer["msg_type"] == "execute_reply":
                    return output


@contextlib.contextmanager
def opened(real: RealNode) -> Iterator[tuple[subprocess.Popen[str], Jupyter]]:
    """Running `berth notebook`, and Jupyter behind the address that it printed."""
    with started(real.project, "berth", "notebook", NAME, "--json") as process:
        yield process, Jupyter(printed(process))


@pytest.fixture(scope="module")
def nell(real: RealNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Berth of one head with a home, into which pip installs Jupyter as docs/engineer.md does."""
    head = {"pool": POOL, "cpu": 1, "memory": "3Gi", "env": {"PYTHONUSERBASE": "/mnt/home/python"}}
    real.project.write(NAME, engineer=berth(workers=0, home=home("5Gi"), head=head))
    real.project.up(NAME)
    without = real.project.run("berth", "notebook", NAME, check=False)
    assert without.returncode == 1
    assert f"berth exec {NAME} -- python -m pip install jupyterlab" in without.stderr
    wheels = tmp_path_factory.mktemp("wheels")
    version = real.on_head(
        NAME, "python", "-c", "import platform; print(platform.python_version())"
    ).stdout.strip()
    # Pods of the lab have no way to a package index.
    fetch = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--only-binary=:all:",
        f"--python-version={version}",
        f"--dest={wheels}",
        "jupyterlab",
    ]
    subprocess.run(fetch, check=True)
    place = f"berth-{NAME}/{real.head(NAME)}:/tmp/wheels"
    real.lab.run(["kubectl", "cp", str(wheels), place, "--container", "ray-head"])
    offline = ["--quiet", "--no-index", "--find-links=/tmp/wheels"]
    real.project.run(
        "berth", "exec", NAME, "--", "pip", "install", "--user", *offline, "jupyterlab"
    )
    yield NAME
    real.project.run("berth", "destroy", "-s", NAME, "--yes", "--allow-destroy")
    real.project.run("berth", "home", "remove", NAME, "-s", "env", "--yes")


def marks(real: RealNode) -> dict[str, str]:
    (cluster,) = real.project.get("rayclusters", "-n", f"berth-{NAME}")
    return dict(cluster["metadata"].get("annotations") or {})


def test_a_kernel_outlives_the_connection(real: RealNode, nell: str) -> None:
    with opened(real) as (process, jupyter):
        assert jupyter.document["folder"] == "/mnt/home"
        assert jupyter.ask("/api/status", jupyter.token)[0] == 200
        assert jupyter.ask("/api/status")[0] == 403
        _, kernel = jupyter.ask("/api/kernels", jupyter.token, "POST")
        assert "nodes 1" in jupyter.run(kernel["id"], CODE)
        here = [
            path.read_bytes()
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if os.access(path, os.R_OK)
        ]
        # The pods' processes are among them.
        assert any(b"jupyter_server" in arguments for arguments in here)
        assert not any(jupyter.token.encode() in arguments for arguments in here)
        eventually(lambda: OPEN_UNTIL in marks(real), "the keeper sees the connection")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=_SECONDS) == 0
    assert OPEN_UNTIL not in marks(real)
    with opened(real) as (_, again):
        assert again.token == jupyter.token
        assert [one["id"] for one in again.ask("/api/kernels", again.token)[1]] == [kernel["id"]]
    # The kernel is connected to Ray, so that it is work although nobody is connected to it.
    refused = real.project.run("berth", "suspend", nell, check=False)
    assert refused.returncode == 3, refused.stderr


def test_jupyter_in_the_home_is_there_after_a_suspension(real: RealNode, nell: str) -> None:
    assert "stopped the notebook" in real.project.run("berth", "notebook", nell, "--stop").stderr
    assert "has no notebook" in real.project.run("berth", "notebook", nell, "--stop").stderr
    real.project.run("berth", "suspend", nell)
    real.project.run("berth", "wake", nell)
    with opened(real) as (_, jupyter):
        assert jupyter.ask("/api/status", jupyter.token)[1]["kernels"] == 0
