from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from pathlib import Path

from tests import forks
from tests.forks import LAB, python

WATCH = """\
import os, sys, time
parent = os.getppid()
print("begun", flush=True)
while os.getppid() == parent:
    time.sleep(0.01)
print("an orphan", flush=True)
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python(), *words], capture_output=True, text=True, check=False, timeout=60)


def test_a_fork_ends_as_its_program_does() -> None:
    assert run("-c", "print('said'); raise SystemExit(3)").returncode == 3
    assert run("-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)").returncode == -15


def test_a_fork_has_the_temporary_folder_of_its_environment(tmp_path: Path) -> None:
    command = [python(*LAB), "-c", "import tempfile; print(tempfile.gettempdir())"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}\n"


def test_a_fork_whose_parent_is_killed_notices() -> None:
    """Plugins rely on it when their engine is killed."""
    shell = ["sh", "-c", '"$0" -c "$1" & wait', python(), WATCH]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout
        assert engine.stdout.readline() == "begun\n"
        engine.kill()
        assert engine.stdout.readline() == "an orphan\n"


def test_a_fork_is_killed_with_a_client_that_has_read_nothing() -> None:
    ours, theirs = os.pipe()
    with socket.socket(socket.AF_UNIX) as client, os.fdopen(ours, "rb") as output, Path(os.devnull).open() as nothing:
        client.connect(f"\0{Path(python()).parent.name}")
        words = ["-c", "import time; print('begun', flush=True); time.sleep(600)"]
        request = json.dumps([words, str(Path.cwd()), dict(os.environ)]) + "\n"
        socket.send_fds(client, [request.encode()], [nothing.fileno(), theirs, theirs])
        os.close(theirs)
        assert output.readline() == b"begun\n"
        client.close()
        assert select.select([output], [], [], 30)[0], "the fork goes on"
        assert output.read() == b""


def test_a_fork_writes_its_output_and_runs_what_was_registered_for_its_end() -> None:
    done = run("-c", "import atexit; atexit.register(print, 'registered'); print('said', end=' ')")
    assert (done.returncode, done.stdout) == (0, "said registered\n")
    assert run("-c", "raise SystemExit('why')").stderr == "why\n"
    assert run("-c", "raise SystemExit('why')").returncode == 1
    failed = run("-c", "1 / 0")
    assert (failed.returncode, "ZeroDivisionError" in failed.stderr) == (1, True)


def test_python_itself_runs_where_no_server_can_be_reached() -> None:
    """A network namespace has no names of another one."""
    command = [sys.executable, "-I", "-S", forks.__file__, "run", "nobody", "-c", "import sys; print(sys.argv)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "['-c']\n"
