"""Builds of several tools, one after the other, and their lines."""

import contextlib
from pathlib import Path

import pytest

from berth.lab.errors import LabError
from berth.lab.toolchain import go as compiler
from berth.lab.toolchain.tools import BY_NAME
from tests.lab.project import eventually

ETCD = BY_NAME["etcd"]
KUBERNETES = BY_NAME["kubernetes"]


def test_caches_of_a_fetched_go_go_with_the_last_build_that_ends_well(tmp_path: Path) -> None:
    go = compiler.Go(tmp_path / "go", "1.99.0", "made for this test", tmp_path / "caches")
    compiled = tmp_path / "caches" / "build" / "package.a"
    environment = go.environment()
    assert environment["GOCACHE"] == str(compiled.parent)
    assert environment["GOMODCACHE"] == str(tmp_path / "caches" / "modules")
    with contextlib.suppress(LabError), go.in_use():
        compiled.parent.mkdir()
        compiled.touch()
        raise LabError("a build that failed")
    assert compiled.exists(), "the next run goes on with it"
    (tmp_path / "caches" / "old-1").mkdir()  # of a removal that was killed
    with go.in_use():
        with go.in_use():
            pass
        assert compiled.exists(), "another build uses it"
    assert not compiled.exists()
    eventually(
        lambda: list((tmp_path / "caches").iterdir()) == [tmp_path / "caches" / "lock"],
        "the removal's end",
    )


def test_caches_that_the_user_chose_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOCACHE", str(tmp_path / "theirs"))
    (tmp_path / "theirs").mkdir()
    go = compiler.Go(tmp_path / "go", "1.99.0", "made for this test", tmp_path / "caches")
    assert go.environment()["GOCACHE"] == str(tmp_path / "theirs")
    with go.in_use():
        pass
    assert (tmp_path / "theirs").is_dir()
