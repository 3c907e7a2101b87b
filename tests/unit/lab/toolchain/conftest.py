"""Stand-ins for what the tools come from: a `go` of our own, and a release site on loopback."""

import hashlib
import http.server
import io
import json
import platform
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from berth.lab.progress import LabProgress
from berth.lab.toolchain import ensure, releases

# Answers as Go does where the toolchain asks, and "builds" a program for each package.
GO = """#!{python}
import os, pathlib, re, sys, time
match sys.argv[1:]:
    case ["env", "GOVERSION"]:
        print("go1.99.0")
    case ["list", *rest] if "-m" in rest:
        print({module!r})
    case ["build", *rest]:
        pathlib.Path(os.environ["GOTMPDIR"], "go-build1").touch()
        folder = pathlib.Path(rest[rest.index("-o") + 1])
        for package in rest[rest.index("-o") + 2 :]:
            name = re.sub("/v[0-9]+$", "", package).rpartition("/")[2]
            with open({log!r}, "a") as log:
                print(name, file=log)
            if pathlib.Path({stuck!r}).exists():
                time.sleep(1000)
            (folder / name).write_text("built " + name)
"""


@dataclass
class Site:
    """Release site on loopback: bodies by address without `https://`, and what it was asked for.

    Attributes:
        address: where it answers.
        bodies: what is there.
        cut: addresses whose body ends early.
        silent: whether it takes requests and never answers.
        asked: addresses that were asked for.
    """

    address: str = ""
    bodies: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    silent: bool = False
    asked: list[str] = field(default_factory=list)

    def publish(
        self, file: releases.ReleasedFile, body: bytes, checksum: str | None = None
    ) -> None:
        """Put a file there, and its checksum beside it in the form of its project."""
        self.bodies[file.address.partition("://")[2]] = body
        checksum = hashlib.sha256(body).hexdigest() if checksum is None else checksum
        where = file.checksums.partition("://")[2]
        if where.startswith("api.github.com/"):
            release = json.loads(self.bodies.get(where, b'{"assets": []}'))
            release["assets"].append({"name": file.name, "digest": f"sha256:{checksum}"})
            self.bodies[where] = json.dumps(release).encode()
        elif where.endswith(f"{file.name}.sha256") and "dl.k8s.io" in where:
            self.bodies[where] = checksum.encode()
        else:
            others = f"{'0' * 64}  another-file.tar.gz\n"
            self.bodies[where] = f"{others}{checksum}  {file.name}\n".encode()


def archive(members: dict[str, bytes]) -> bytes:
    """Return a gzipped tar file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, body in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return file.getvalue()


@pytest.fixture
def printed(progress: LabProgress) -> Callable[[], str]:
    """Progress lines so far."""
    return lambda: cast("io.StringIO", progress.console.file).getvalue()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Machine with an empty cache, no installed tools, and a `go` that writes what it builds."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (tmp_path / "module" / "config" / "crd" / "bases").mkdir(parents=True)
    go = programs / "go"
    text = GO.format(
        python=sys.executable,
        module=str(tmp_path / "module"),
        log=str(tmp_path / "built"),
        stuck=str(tmp_path / "stuck"),
    )
    go.write_text(text)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.delenv(ensure.CHOICE, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(releases.MIRROR, "http://127.0.0.1:9")  # nobody answers there
    return tmp_path


@pytest.fixture
def site(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Release site that the machine reaches."""
    del machine
    there = Site()
    end = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            there.asked.append(name)
            if there.silent:
                end.wait(60)
                return
            body = there.bodies.get(name)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if name in there.cut else body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        there.address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv(releases.MIRROR, there.address)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield there
        end.set()
        server.shutdown()
        thread.join()
