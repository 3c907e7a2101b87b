"""Lab on a machine with Pulumi's own kubernetes plugin: the real engine installs, downloads and
loads one.

The program in it is the stand-in, which writes down that it was started from there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import socket
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from berth.lab import kubernetes_plugin, programs
from berth.lab.kubernetes_plugin import CHOICE, PROGRAM, folder_name, wanted_version
from berth.lab.progress import Progress
from tests.lab.conftest import Lab

pytestmark = pytest.mark.lab

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
ARCHIVE = f"pulumi-resource-kubernetes-v{wanted_version()}-linux-{ARCHITECTURES.get(platform.machine(), '')}.tar.gz"

PROGRAM_TEXT = """
import pulumi
import pulumi_kubernetes as k8s

provider = k8s.Provider("lab", kubeconfig=open("kubeconfig").read())
options = pulumi.ResourceOptions(provider=provider)
k8s.core.v1.Namespace("ns", metadata={"name": "by-the-installed-plugin"}, opts=options)
"""


@pytest.fixture
def archive(lab: Lab, tmp_path: Path) -> Path:
    """The archive of a plugin, packed as Pulumi publishes it."""
    text = programs.plugin_script(lab.home, "berth.lab.plugins.kubernetes", "Played by the lab's stand-in.")
    first, rest = text.split("\n", 1)
    content = tmp_path / "content"
    content.mkdir()
    (content / PROGRAM).write_text(f'{first}\necho "$0" >> {tmp_path}/started\n{rest}')
    (content / PROGRAM).chmod(0o755)
    (content / "LICENSE").write_text("none")
    (content / "README.md").write_text("none")
    path = tmp_path / "published" / ARCHIVE
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as tar:
        for file in sorted(content.iterdir()):
            tar.add(file, file.name)
    return path


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home folder of a user without any plugin; the built tools stay in the cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    monkeypatch.delenv(CHOICE)
    return tmp_path / "home"


def test_a_lab_uses_the_installed_plugin(lab: Lab, archive: Path, user: Path, tmp_path: Path) -> None:
    install = ["pulumi", "plugin", "install", "resource", "kubernetes", wanted_version(), "--file", str(archive)]
    lab.run(["env", f"PULUMI_HOME={user}/.pulumi", *install])
    plugin = user / ".pulumi" / "plugins" / folder_name()
    assert sorted(path.name for path in plugin.iterdir()) == ["LICENSE", "README.md", PROGRAM]
    try:
        output = lab.berth("up", "--no-update").stdout
        assert "real: Pulumi, Pulumi's kubernetes plugin," in output
        assert f"Pulumi's kubernetes plugin is the real one, {plugin}" in output
        assert f"Pulumi's kubernetes plugin: the real one, {plugin}" in lab.berth("status").stdout
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "Pulumi.yaml").write_text("name: installed\nruntime: python\n")
        (folder / "__main__.py").write_text(PROGRAM_TEXT)
        (folder / "kubeconfig").write_text(lab.kubeconfig.read_text())
        lab.run(["pulumi", "stack", "init", "installed"], folder)
        try:
            lab.run(["pulumi", "up", "--yes", "--skip-preview", "-s", "installed"], folder)
            assert lab.get("namespace", "by-the-installed-plugin")
            started = set((tmp_path / "started").read_text().split())
            assert started == {str(lab.home.pulumi_home / "plugins" / folder_name() / PROGRAM)}
        finally:
            lab.run(["pulumi", "destroy", "--yes", "--skip-preview", "-s", "installed"], folder)
            lab.run(["pulumi", "stack", "rm", "--yes", "installed"], folder)
    finally:
        os.environ[CHOICE] = "stand-in"
        output = lab.berth("up", "--no-update").stdout
    assert "Pulumi's kubernetes plugin is a stand-in of the lab's" in output


@contextlib.contextmanager
def published(folder: Path) -> Iterator[str]:
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def override(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES", f"kubernetes={address}")


def test_the_engine_fetches_the_plugin_where_there_is_a_network(
    lab: Lab, archive: Path, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with published(archive.parent) as address:
        override(monkeypatch, address)
        found = kubernetes_plugin.choose(lab.home, lab.home.bin / "pulumi", Progress())
    assert found.folder == tmp_path / "cache" / "berth" / "pulumi" / "plugins" / folder_name()
    assert (found.folder / PROGRAM).is_file()
    assert not list(user.glob(".pulumi/plugins/*")), "nothing is installed for the user"


def test_a_server_that_never_answers_is_given_up(
    lab: Lab, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not user.exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        override(monkeypatch, f"http://127.0.0.1:{server.getsockname()[1]}")
        found = kubernetes_plugin.choose(lab.home, lab.home.bin / "pulumi", Progress(), silence=2)
    assert found.folder is None
    assert "no data arrived within 2 seconds" in found.reason
