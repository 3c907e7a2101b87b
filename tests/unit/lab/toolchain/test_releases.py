"""Released programs from a site on loopback, and builds of what cannot be had there."""

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from berth.components.core.errors import FAILED
from berth.lab.errors import USAGE, LabError
from berth.lab.progress import LabProgress
from berth.lab.toolchain import releases
from berth.lab.toolchain.ensure import CHOICE, programs_of
from berth.lab.toolchain.tools import (
    BY_NAME,
    HELM,
    KUBECTL,
    KUBERAY,
    PULUMI,
    PULUMI_PYTHON,
    TOOLS,
    Tool,
)
from tests.unit.lab.toolchain.conftest import Site, archive

ETCD, KUBERNETES, KWOK = (BY_NAME[name] for name in ("etcd", "kubernetes", "kwok"))


def _publish(site: Site, *tools: Tool) -> None:
    """Publish the releases of some tools; Pulumi's archive has what both of its tools need."""
    for tool in tools:
        for file in tool.release:
            if not any(file.members.values()):
                site.publish(file, b"released " + file.name.encode())
                continue
            members = {path: b"released " + name.encode() for name, path in file.members.items()}
            if tool in {PULUMI, PULUMI_PYTHON}:
                members = {
                    path: b"released " + name.encode()
                    for both in (PULUMI, PULUMI_PYTHON)
                    for name, path in both.release[0].members.items()
                }
            site.publish(file, archive(members))


def _built(machine: Path) -> list[str]:
    log = machine / "built"
    return log.read_text().split() if log.exists() else []


def _entries(machine: Path) -> list[str]:
    folder = machine / "cache" / "berth" / "tools"
    return (
        sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.exists() else []
    )


def test_released_programs_are_installed_once(
    site: Site, machine: Path, progress: LabProgress, printed: Callable[[], str]
) -> None:
    tools = [KUBERNETES, KUBECTL, HELM, ETCD, KWOK, PULUMI, PULUMI_PYTHON]
    _publish(site, *tools)
    found = programs_of(tools, progress)
    assert {name: path.read_text() for name, path in found.items()} == {
        name: f"released {name}-linux-amd64" if name.startswith("kwok") else f"released {name}"
        for name in found
    }
    assert {name for tool in tools for name in (*tool.programs, *tool.copied.values())} == set(
        found
    )
    assert all(os.access(path, os.X_OK) for path in found.values())
    assert _built(machine) == []
    (shared,) = PULUMI.release
    assert site.asked.count(shared.address.partition("://")[2]) == 1, "two tools share this file"
    assert list((machine / "temporary").iterdir()) == []
    assert "Fetching 7 tools from their release sites" in printed()

    site.asked.clear()
    assert programs_of(tools, progress) == found
    assert site.asked == []


def test_what_has_no_release_is_built_after_the_downloads(
    site: Site, machine: Path, progress: LabProgress, printed: Callable[[], str]
) -> None:
    _publish(site, HELM)
    (machine / "module" / "config" / "crd" / "bases" / "ray.yaml").write_text(
        "kind: CustomResourceDefinition\n"
    )
    found = programs_of([KUBERAY, HELM], progress)
    assert found["helm"].read_text() == "released helm"
    assert found["kuberay-operator"].read_text() == "built ray-operator"
    assert (found["crds"] / "ray.yaml").exists()
    assert "Fetching 1 tool from their release sites" in printed()
    assert "Building 1 tool from source" in printed()


@pytest.mark.parametrize("tool", [KUBECTL, HELM, KWOK], ids=lambda tool: tool.name)
def test_a_file_with_another_checksum_is_refused_and_nothing_of_it_stays(
    site: Site, machine: Path, progress: LabProgress, tool: Tool
) -> None:
    _publish(site, tool)
    file = tool.release[0]
    published = hashlib.sha256(site.bodies[file.address.partition("://")[2]]).hexdigest()
    site.bodies[file.address.partition("://")[2]] = b"something else"
    with pytest.raises(LabError) as caught:
        programs_of([tool], progress)
    assert caught.value.code == FAILED
    assert (
        f"wrong checksum of {site.address}/{file.address.partition('://')[2]}"
        in caught.value.problem
    )
    assert f"published: {published}" in caught.value.problem
    assert f"found:     {hashlib.sha256(b'something else').hexdigest()}" in caught.value.problem
    assert _entries(machine) == []
    assert list((machine / "temporary").iterdir()) == []
    assert _built(machine) == [], "a refused file is not passed over in silence"


def _missing(site: Site) -> None:
    del site.bodies[HELM.release[0].address.partition("://")[2]]


def _cut(site: Site) -> None:
    site.cut.add(HELM.release[0].address.partition("://")[2])


def _no_checksums(site: Site) -> None:
    site.bodies[HELM.release[0].checksums.partition("://")[2]] = (
        b"<html>Welcome to this network</html>"
    )


def _other_contents(site: Site) -> None:
    site.publish(HELM.release[0], archive({"README": b"no program"}))


def _no_archive(site: Site) -> None:
    site.publish(HELM.release[0], b"not an archive")


@pytest.mark.parametrize("damage", [_missing, _cut, _no_checksums, _other_contents, _no_archive])
def test_a_release_that_cannot_be_had_is_built_from_source(
    site: Site,
    machine: Path,
    progress: LabProgress,
    printed: Callable[[], str],
    damage: Callable[[Site], None],
) -> None:
    _publish(site, HELM, KUBECTL)
    damage(site)
    found = programs_of([HELM, KUBECTL], progress)
    assert found["helm"].read_text() == "built helm"
    assert found["kubectl"].read_text() == "released kubectl"
    assert _built(machine) == ["helm"]
    (line,) = [line for line in printed().splitlines() if "No release of" in line]
    assert line.startswith("No release of helm can be downloaded here (")
    assert list((machine / "temporary").iterdir()) == []


def test_without_a_release_site_all_is_built(
    machine: Path, progress: LabProgress, printed: Callable[[], str]
) -> None:
    found = programs_of([HELM, KUBECTL], progress)
    assert [found[name].read_text() for name in ("helm", "kubectl")] == [
        "built helm",
        "built kubectl",
    ]
    first, second, *_ = printed().splitlines()
    assert first.startswith("No release site answers here (http://127.0.0.1:9/")
    assert first.endswith("): the tools are built from source")
    assert second.startswith("Building 2 tools from source, once for this machine: ")
    assert sorted(_built(machine)) == ["helm", "kubectl"]


def test_a_site_that_does_not_answer_is_given_up(
    site: Site,
    machine: Path,
    progress: LabProgress,
    printed: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(releases, "PROBE_SECONDS", 0.2)
    site.silent = True
    assert programs_of([HELM], progress)["helm"].read_text() == "built helm"
    assert "No release site answers here (" in printed()
    assert _built(machine) == ["helm"]


def test_a_choice_of_source_asks_no_site(
    site: Site, progress: LabProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    _publish(site, HELM)
    monkeypatch.setenv(CHOICE, "source")
    assert programs_of([HELM], progress)["helm"].read_text() == "built helm"
    assert site.asked == []
    monkeypatch.setenv(CHOICE, "release")
    assert programs_of([HELM], progress)["helm"].read_text() == "released helm"


def test_a_demanded_release_that_cannot_be_had_is_an_error(
    machine: Path, progress: LabProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "release")
    with pytest.raises(
        LabError,
        match=r"the release of helm .* cannot be downloaded, but BERTH_LAB_TOOLS requires it",
    ):
        programs_of([HELM], progress)
    assert _built(machine) == []


def test_another_choice_is_refused(
    machine: Path, progress: LabProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "binary")
    with pytest.raises(LabError) as caught:
        programs_of([HELM], progress)
    assert caught.value.code == USAGE
    assert "`release` or `source`" in caught.value.remedy
    assert _built(machine) == []


def test_ctrl_c_ends_the_builds(machine: Path) -> None:
    (machine / "stuck").touch()
    command = _berth_lab_tools(machine, BERTH_LAB_TOOLS="source")
    while not _built(machine) and command.poll() is None:
        os.sched_yield()
    os.killpg(command.pid, signal.SIGINT)
    errors = command.communicate(timeout=60)[1]
    assert command.returncode == 130
    assert "interrupted; what is built stays in the cache" in errors
    assert "Traceback" not in errors
    assert _entries(machine) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(command.pid, 0)


def _berth_lab_tools(machine: Path, **variables: str) -> subprocess.Popen[str]:
    environment = (
        os.environ
        | {"BERTH_LAB": str(machine / "lab"), "TMPDIR": str(machine / "temporary")}
        | variables
    )
    return subprocess.Popen(
        [sys.executable, "-c", "from berth.cli.main import main; main()", "lab", "tools"],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A" * 64 + "\n", "a" * 64),
        (f"{'b' * 64}  ./release/tool.tar.gz\n{'c' * 64} *other\n", "b" * 64),
        (f"{'d' * 128}  tool.tar.gz", "d" * 128),
        (
            json.dumps({"assets": [{"name": "tool.tar.gz", "digest": f"sha256:{'e' * 64}"}]}),
            "e" * 64,
        ),
        (json.dumps({"assets": [{"name": "tool.tar.gz", "digest": None}]}), None),
        (json.dumps({"message": "API rate limit exceeded"}), None),
        (f"{'f' * 64}  another-tool.tar.gz", None),
        ("f" * 63, None),
        ("{", None),
        ("", None),
    ],
)
def test_published_checksums_are_read_in_every_form(text: str, expected: str | None) -> None:
    assert releases.published(text, "tool.tar.gz") == expected


def test_a_redirection_away_from_https_is_not_followed() -> None:
    handler = releases.StaysEncrypted()
    request = urllib.request.Request("https://example.com/a")
    with pytest.raises(urllib.error.URLError, match="not https"):
        handler.redirect_request(request, None, 302, "Found", {}, "http://example.com/b")  # type: ignore[arg-type]


def test_releases_are_for_linux_on_two_architectures(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del machine
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert {file.address.rpartition("-")[2] for file in PULUMI.release} == {"arm64.tar.gz"}
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert all(not tool.release for tool in TOOLS)
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert all(not tool.release for tool in TOOLS)


@pytest.mark.parametrize("tool", BY_NAME.values(), ids=lambda tool: tool.name)
def test_a_release_has_everything_of_its_tool(machine: Path, tool: Tool) -> None:
    del machine
    names = [name for file in tool.release for name in file.members]
    # A released kubernetes plugin has its schema in itself.
    copied = set(tool.copied.values()) - {"schema.json"}
    assert sorted(names) == (sorted([*tool.programs, *copied]) if tool.files else [])
    for file in tool.release:
        assert file.address.startswith("https://")
        assert file.checksums.startswith("https://")
        assert "{" not in file.address + file.checksums + "".join(file.members.values())
