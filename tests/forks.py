"""Python processes that begin with berth's modules imported: forks of one process.

Most of the time of a short `berth` command goes into imports. The program of `python()` stands in
place of `sys.executable` in tests of what the command does. Tests of Python's own start (encodings,
a closed stream, Ctrl-C during an import) and of variables that a module reads when it is imported
(COLUMNS) use `sys.executable`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# The client runs this file without site-packages, so that all other imports are inside functions.
PULUMI = ("berth.cli.verbs.doctor.registered", "berth.stacks.program.main", "pulumi")
"""Modules of Pulumi's runtime and of berth's program."""
LAB = (
    *PULUMI,
    "berth.stacks.program.environment",
    "berth.stacks.program.google",
    "berth.stacks.program.engineer",
    "berth.lab.plugins.gcp.provider",
    "pip._internal.commands.list",
    "berth.components.cluster.connection",
    "berth.cli.main",
    "berth.cli.pulumi.preview.plan",
    "berth.cli.pulumi.update.update",
    "berth.cli.verbs.status.page",
    "berth.cli.verbs.doctor.examine",
    "berth.cli.verbs.diagnose.diagnosis",
    "berth.cli.verbs.verify.gpu_proof",
)
"""Modules of what runs in the lab's tests: an engine's program and plugins, the list of packages
that it asks for, and commands.
"""

_COMMAND = ("berth.cli.main", "berth.cli.repository.check")
_CHUNK = 1 << 16
_ORPHAN = b"o"
_PARENT_SECONDS = 0.5
_started: dict[tuple[str, ...], tuple[str, Any]] = {}
_code: int | None = None


def python(*modules: str) -> str:
    """Return the path of a program that starts Python, to stand in place of `sys.executable`.

    A program `berth` is beside it.

    Args:
        modules: modules that are imported beside those of the command.
    """
    import atexit  # noqa: PLC0415
    import shutil  # noqa: PLC0415
    import subprocess  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    if modules not in _started:
        folder = tempfile.mkdtemp(prefix="berth-forks-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        program, name = f"{folder}/python", os.path.basename(folder)  # noqa: PTH119
        run = f"exec {sys.executable} -I -S {__file__} run {name}"
        for path, words in ((program, run), (f"{folder}/berth", f"{run} -m berth.cli")):
            with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f'#!/bin/sh\n{words} "$@"\n')
            os.chmod(path, 0o755)  # noqa: PTH101, S103
        command = [sys.executable, __file__, "serve", name, *_COMMAND, *modules]
        # The server ends with this process, whose end closes the pipe, and not by Ctrl-C.
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
        assert server.stdout
        assert server.stdout.readline() == b"ready\n"
        _started[modules] = program, server
    return _started[modules][0]


def _run(name: str, words: list[str]) -> NoReturn:
    """Run Python with some words in a fork of the server; end as that fork ends."""
    if words[0].startswith("-") and words[0] not in {"-m", "-c", "-P", "-u"}:
        os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - such as --version
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(f"\0{name}")
        except ConnectionRefusedError:  # a network namespace has no names of another, and a fork would not be in it
            os.execv(sys.executable, [sys.executable, *words])  # noqa: S606
        request = json.dumps([words, os.getcwd(), dict(os.environ)]) + "\n"  # noqa: PTH109
        parent = os.getppid()
        socket.send_fds(server, [request.encode()], [0, 1, 2])
        child = int(_line(server))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(child, number))
        while not select.select([server], [], [], _PARENT_SECONDS)[0]:
            if os.getppid() != parent:
                server.sendall(_ORPHAN)
                sys.exit(1)
        code = os.waitstatus_to_exitcode(int(_line(server)))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _line(server: socket.socket) -> bytes:
    """Read a line of the server's, and no byte of the next one."""
    line = b""
    while not line.endswith(b"\n"):
        line += server.recv(1) or sys.exit(1)
    return line


def _serve(name: str, modules: list[str]) -> list[str]:
    """Answer clients until stdin ends; in a fork for one of them, return its words."""
    import atexit  # noqa: PLC0415
    import gc  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415

    atexit.register(_leave)  # before all others, so that it is the last one in a fork
    for module in modules:
        import_module(module)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        os.write(1, b"ready\n")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while sys.stdin not in select.select([sys.stdin, server], [], [])[0]:
            client, _ = server.accept()
            with client:
                if os.fork() == 0:
                    server.close()
                    return _fork(client)
    sys.exit()


def _fork(client: socket.socket) -> list[str]:
    """Fork once more; return the words in the fork, and tell the client how that has ended.

    If the client is killed, so is the fork. If the client has lost its parent, so does the fork:
    plugins watch for the end of the engine.
    """
    import tempfile  # noqa: PLC0415

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, _, _ = socket.recv_fds(client, _CHUNK, 3)
    while not request.endswith(b"\n"):
        request += client.recv(_CHUNK)
    if child := os.fork():
        ended = os.pidfd_open(child)
        try:
            client.sendall(f"{child}\n".encode())
            speaks = client.fileno() in select.select([client.fileno(), ended], [], [])[0]
            message = client.recv(len(_ORPHAN)) if speaks else None
        except ConnectionError:  # It was killed before it had read the child's number.
            message = b""
        if message is None:
            _, status = os.waitpid(child, 0)
            client.sendall(f"{status}\n".encode())
        elif message != _ORPHAN:
            os.kill(child, signal.SIGKILL)
        os._exit(0)
    client.close()
    words, folder, environment = json.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # TMPDIR is read again
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode) for number, mode in enumerate("rww"))  # noqa: PTH123, SIM115
    return list(words)


def _leave() -> None:
    """End a fork whose exit code is known without the interpreter's own end.

    That frees each object of all modules, and so copies the memory that the fork shares: two
    thirds of the CPU of a short command.
    """
    if _code is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_code)


if __name__ == "__main__":
    _, _does, _name, *_words = sys.argv
    if _does == "run":
        _run(_name, _words)
    sys.path.pop(0)  # this file's folder
    import runpy

    _words = _serve(_name, _words)
    _path = os.environ.get("PYTHONPATH", "").split(":")
    sys.path[:0] = [*([] if "-P" in _words[:2] else [""]), *filter(None, _path)]
    while _words[0] in {"-P", "-u"}:
        _words.pop(0)
    try:
        if _words[0] == "-m":
            sys.argv = _words[1:]
            sys.modules.pop(f"{_words[1]}.__main__", None)
            runpy.run_module(_words[1], run_name="__main__", alter_sys=True)
        elif _words[0] == "-c":
            sys.argv = ["-c", *_words[2:]]
            exec(compile(_words[1], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
        else:
            sys.argv = _words
            runpy.run_path(_words[0], run_name="__main__")
        _code = 0
    except SystemExit as _end:
        _code = _end.code if isinstance(_end.code, int) else None
        raise
